import express, { type Express, type RequestHandler } from "express";
import { type Guard, type LatchkeyClient, problemOf } from "latchkey/client";
import { accessOf, guardExpress } from "latchkey/client/express";
import { createLogins } from "./logins.js";

interface BackendOptions {
  /** Calls Latchkey with the private key of the shop. */
  readonly latchkey: Pick<LatchkeyClient, "sessions">;
  readonly guard: Guard;
  /** The origin of the page. Calls from any other origin are refused. */
  readonly page: string;
}

/** Lifetime of a session: long enough to look at the cards. */
const sessionLifetime = 10 * 60_000;

const cards: Readonly<Record<string, string>> = {
  "anna/card-1": "4242424242424242",
  "ben/card-1": "5555555555554444",
};

/** The backend of the shop. It authenticates customers and decides what their sessions may do. */
export function createBackend({ latchkey, guard, page }: BackendOptions): Express {
  const logins = createLogins(["anna", "ben"]);
  const app = express();
  app.disable("x-powered-by");
  app.use(onlyFor(page), express.json({ limit: "1kb" }));

  app.post("/login", (request, response) => {
    const cookie = logins.signIn(String(request.body?.customer));
    if (!cookie) {
      response.status(401).json({ detail: "There is no such customer." });
      return;
    }
    response.setHeader("Set-Cookie", cookie).sendStatus(204);
  });

  // Whoever opened the session has its key, and a nonce does not identify that person. In session
  // fixation an attacker opens a session and makes a customer's browser send its nonce. So accept a
  // nonce only from a signed-in customer (the cookie) and from our own page (`onlyFor` above), never
  // from the URL. Grant what this customer may do, whatever else the request contains.
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
      response.status(404).json({ detail: "There is no such card." });
      return;
    }
    const { transform } = accessOf(request);
    response.json({ id, number: transform === "reveal" ? number : mask(number) });
  });

  return app;
}

const containerOf = (customer: string) => `/customers/${customer}/`;

const mask = (number: string) => number.slice(-4).padStart(number.length, "•");

/** The least that the page needs: read the cards of this customer, masked. */
function ownCardsMasked(customer: string) {
  return {
    priority: 1,
    transform: "mask",
    permissions: ["token:read"],
    conditions: [{ attribute: "container", operator: "equals", value: containerOf(customer) }],
  };
}

/** Serves calls of one page only, and allows it to send cookies and keys. */
function onlyFor(page: string): RequestHandler {
  return ({ method, headers: { origin } }, response, next) => {
    if (origin !== page) {
      response.status(403).json({ detail: "Call this from the page of the shop." });
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
