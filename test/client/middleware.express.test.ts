import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import express, { type ErrorRequestHandler, type Express } from "express";
import { accessOf, type GuardExpressOptions, guardExpress } from "../../src/client/express.js";
import type { Guard } from "../../src/client/guard.js";
import { send } from "../support/http/http.js";
import { callOverHttp, describeHttpMiddleware } from "./http-middleware-suite.js";
import {
  type AccessGetter,
  createFakeGuard,
  type GuardedService,
  keys,
} from "./middleware-suite.js";

interface Params {
  readonly id: string;
}

const thrown: unknown[] = [];
const hideErrors: ErrorRequestHandler = (error, _request, response, _next) => {
  thrown.push(error);
  response.status(500).json({});
};

async function listen(app: Express) {
  const server = app.use(hideErrors).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, close: async () => void (await new Promise((done) => server.close(done))) };
}

async function start(guard: Guard, options: GuardExpressOptions<Params>): Promise<GuardedService> {
  const handled: AccessGetter[] = [];
  const app = express();
  app.get("/tokens/:id", guardExpress(guard, options), (request, response) => {
    handled.push(() => accessOf(request));
    const { id }: Params = request.params;
    response.json({ id });
  });
  const { port, close } = await listen(app);
  return { call: (request) => callOverHttp(port, request), handled, close };
}

describeHttpMiddleware("guardExpress", start);

describe("guardExpress in an application", () => {
  let close = async () => {};
  afterEach(() => close());

  it("passes the request to the functions of the options", async () => {
    const guard = createFakeGuard();
    const service = await start(guard, {
      permission: ({ method }) => (method === "GET" ? "token:read" : "token:create"),
      token: ({ params }) => ({ id: params.id }),
    });
    close = service.close;
    await service.call({ keys: [keys.good] });
    expect(guard.checks).toEqual([[keys.good, "token:read", { id: "card-1" }]]);
  });

  it("uses the client address from trusted proxies", async () => {
    const guard = createFakeGuard();
    const app = express().set("trust proxy", "loopback");
    app.use(guardExpress(guard, { permission: "token:read" }));
    const server = await listen(app);
    close = server.close;
    const headers = { "svc-api-key": keys.good, "x-forwarded-for": "1.2.3.4, 203.0.113.7" };
    await send(server, "/", { headers });
    expect(guard.contexts).toEqual([{ origin: undefined, address: "203.0.113.7" }]);
  });

  it("passes errors of functions in the options to the error handlers", async () => {
    const bug = new Error("a bug");
    const service = await start(createFakeGuard(), {
      permission: () => {
        throw bug;
      },
    });
    close = service.close;
    thrown.length = 0;
    await service.call({ keys: [keys.good] });
    expect(thrown).toEqual([bug]);
  });

  it("guards all later handlers, which get the decision of the last guard", async () => {
    const app = express();
    const guard = createFakeGuard();
    const revealing: Guard = {
      ...guard,
      check: async (...args) => ({
        ...(await guard.check(...args)),
        transform: "reveal",
      }),
    };
    app.use(guardExpress(guard, { permission: "token:read" }));
    const router = express.Router();
    router.get(
      "/:id",
      guardExpress(revealing, { permission: "token:use" }),
      (request, response) => {
        response.json(accessOf(request).transform);
      },
    );
    app.use("/plain", router);
    const server = await listen(app);
    close = server.close;
    const headers = { "svc-api-key": keys.good };
    expect((await send(server, "/plain/card-1", { headers })).body).toBe('"reveal"');
    expect((await send(server, "/nowhere")).status).toBe(401);
  });

  it("throws from accessOf if no guard checked the request", async () => {
    const app = express();
    app.get("/", (request, response) => {
      response.json(accessOf(request));
    });
    const server = await listen(app);
    close = server.close;
    thrown.length = 0;
    expect((await send(server, "/")).status).toBe(500);
    expect(String(thrown)).toContain("The request was not checked");
  });
});
