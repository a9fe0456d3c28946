import express, { type Express, type RequestHandler } from "express";
import { type Guard, type LatchkeyClient, problemOf } from "latchkey/client";
import { accessOf, guardExpress } from "latchkey/client/express";
import { createLogins } from "./logins.js";

interface BackendOptions {
  /** Calls Latchkey with the private key of the shop. */
  readonly latchkey: Pick<LatchkeyClient, "sessions">;
  readonly guard: Guard;
  /** The only origin that may call the backend. */
  readonly page: string;
}

const sessionLifetime = 10 * 60_000;

const cards: Readonly<Record<string, string>> = {
  "anna/card-1": "4242424242424242",
  "ben/card-1": "5555555555554444",
};

/** The shop backend. It authenticates customers and authorizes their sessions. */
export function createBackend({ latchkey, guard, page }: BackendOptions): Express {
  const logins = createLogins(["anna", "ben"]);
  const app = express();
  app.disable("x-powered-by");
  app.use(allowOrigin(page), express.json({ limit: "1kb" }));

  app.post("/login", (request, response) => {
    const cookie = logins.signIn(String(request.body?.customer));
    if (!cookie) {
      response.status(401).json({ detail: "Unknown customer." });
      return;
    }
    response.setHeader("Set-Cookie", cookie).sendStatus(204);
  });

  // Prevents session fixation: an attacker opens a session, keeps its key, and makes the browser of
  // a customer send us the nonce. So accept a nonce only from a signed-in customer (cookie), only
  // from our own page (`allowOrigin` above) and only in the body, never in the URL. Grant what this
  // customer may do, regardless of the request.
  app.post("/latchkey-session", async (request, response) => {
    const customer = logins.customerOf(request.headers.cookie);
    if (!customer) {
      response.status(401).json({ detail: "Sign in first." });
      return;
    }
    const nonce: unknown = request.body?.nonce;
    if (typeof nonce !== "string") {
      response.status(400).json({ detail: "Send the nonce in the body." });
      return;
    }
    try {
      await latchkey.sessions.authorizeSession({
        nonce,
        rules: [ownCardsMasked(customer)],
        expiresAt: { seconds: BigInt(Math.ceil((Date.now() + sessionLifetime) / 1000)), nanos: 0 },
      });
      response.sendStatus(204);
    } catch (error) {
      const { code = "unavailable", detail } = problemOf(error);
      console.error(`A session of ${customer} was not authorized: ${code}`);
      response.status(code.startsWith("nonce_") ? 409 : 502).json({ detail });
    }
  });

  const mayRead = guardExpress<{ customer: string; id: string }>(guard, {
    permission: "token:read",
    token: ({ params }) => ({ id: params.id, container: containerOf(params.customer) }),
  });
  app.get("/customers/:customer/cards/:id", mayRead, (request, response) => {
    const { customer, id } = request.params;
    const number = cards[`${customer}/${id}`];
    if (!number) {
      response.status(404).json({ detail: "Card not found." });
      return;
    }
    const { transform } = accessOf(request);
    response.json({ id, number: transform === "reveal" ? number : mask(number) });
  });

  return app;
}

const containerOf = (customer: string) => `/customers/${customer}/`;

const mask = (number: string) => number.slice(-4).padStart(number.length, "•");

/** The minimum that the page needs: read the cards of this customer, masked. */
function ownCardsMasked(customer: string) {
  return {
    priority: 1,
    transform: "mask",
    permissions: ["token:read"],
    conditions: [{ attribute: "container", operator: "equals", value: containerOf(customer) }],
  };
}

/** Refuses calls from other origins. Allows cookies and keys from this one (CORS). */
function allowOrigin(page: string): RequestHandler {
  return ({ method, headers: { origin } }, response, next) => {
    if (origin !== page) {
      response.status(403).json({ detail: "Origin not allowed." });
      return;
    }
    response.setHeader("Access-Control-Allow-Origin", page);
    response.setHeader("Access-Control-Allow-Credentials", "true");
    response.setHeader("Vary", "Origin");
    if (method === "OPTIONS") {
      response.setHeader("Access-Control-Allow-Headers", "Content-Type, SVC-API-KEY");
      response.sendStatus(204);
      return;
    }
    next();
  };
}
