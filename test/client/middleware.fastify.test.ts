import { describe, expect, it } from "@jest/globals";
import fastify, { type FastifyInstance } from "fastify";
import { accessOf, type GuardFastifyOptions, guardFastify } from "../../src/client/fastify.js";
import type { Guard } from "../../src/client/guard.js";
import { callOverHttp, describeHttpMiddleware } from "./http-middleware-suite.js";
import {
  type AccessGetter,
  createFakeGuard,
  type GuardedService,
  keys,
} from "./middleware-suite.js";

interface Route {
  Params: { id: string };
}

type Hook = "onRequest" | "preHandler";

function createApp(): FastifyInstance {
  const app = fastify();
  return app.setErrorHandler((_error, _request, reply) => reply.code(500).send({}));
}

function startWith(hook: Hook) {
  return async (guard: Guard, options: GuardFastifyOptions<Route>): Promise<GuardedService> => {
    const handled: AccessGetter[] = [];
    const app = createApp();
    app.get<Route>("/tokens/:id", { [hook]: guardFastify(guard, options) }, async (request) => {
      handled.push(() => accessOf(request));
      return { id: request.params.id };
    });
    const port = Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
    return { call: (request) => callOverHttp(port, request), handled, close: () => app.close() };
  };
}

describeHttpMiddleware("guardFastify as onRequest", startWith("onRequest"));
describeHttpMiddleware("guardFastify as preHandler", startWith("preHandler"));

describe("guardFastify in an application", () => {
  const headers = { "svc-api-key": keys.good };

  it("passes the request to the functions of the options", async () => {
    const guard = createFakeGuard();
    const app = createApp();
    const onRequest = guardFastify<Route>(guard, {
      permission: ({ method }) => (method === "GET" ? "token:read" : "token:create"),
      token: ({ params }) => ({ id: params.id }),
    });
    app.get<Route>("/tokens/:id", { onRequest }, async () => "");
    await app.inject({ url: "/tokens/card-1", headers });
    expect(guard.checks).toEqual([[keys.good, "token:read", { id: "card-1" }]]);
  });

  it("uses the client address from trusted proxies", async () => {
    const guard = createFakeGuard();
    const app = fastify({ trustProxy: "127.0.0.1" });
    const onRequest = guardFastify(guard, { permission: "token:read" });
    app.get("/", { onRequest }, async () => "");
    const forwarded = { ...headers, "x-forwarded-for": "1.2.3.4, 203.0.113.7" };
    await app.inject({ url: "/", headers: forwarded, remoteAddress: "127.0.0.1" });
    expect(guard.contexts).toEqual([{ origin: undefined, address: "203.0.113.7" }]);
  });

  it("can read the body as preHandler", async () => {
    const guard = createFakeGuard();
    const app = createApp();
    const preHandler = guardFastify<{ Body: { container: string } }>(guard, {
      permission: "token:create",
      token: ({ body }) => ({ container: body.container }),
    });
    app.post<{ Body: { container: string } }>("/tokens", { preHandler }, async () => "");
    const payload = { container: "/pci/" };
    await app.inject({ method: "POST", url: "/tokens", headers, payload });
    expect(guard.checks).toEqual([[keys.good, "token:create", { container: "/pci/" }]]);
  });

  it("guards all routes of a scope as its hook, and no others", async () => {
    const app = createApp();
    app.get("/open", async () => "open");
    app.register(async (scope) => {
      scope.addHook("onRequest", guardFastify(createFakeGuard(), { permission: "token:read" }));
      scope.get("/guarded", async (request) => accessOf(request).transform);
    });
    expect((await app.inject("/open")).body).toBe("open");
    expect((await app.inject("/guarded")).statusCode).toBe(401);
    expect((await app.inject({ url: "/guarded", headers })).body).toBe("mask");
  });

  it("throws from accessOf if no guard checked the request", async () => {
    const app = fastify();
    app.get("/", async (request) => accessOf(request));
    const response = await app.inject("/");
    expect(response.statusCode).toBe(500);
    expect(response.json().message).toContain("The request was not checked");
  });
});
