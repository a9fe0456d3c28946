import { describe, expect, it } from "@jest/globals";
import type { Guard } from "../../src/client/guard.js";
import type { MiddlewareOptions } from "../../src/client/middleware.js";
import { defaultKeyHeader } from "../../src/contract/headers.js";
import { send } from "../support/http/http.js";
import {
  type CallResult,
  createFakeGuard,
  describeMiddleware,
  type GuardedRequest,
  type GuardedService,
  keys,
} from "./middleware-suite.js";

/** Calls a guarded service over HTTP. */
export async function callOverHttp(
  port: number,
  { keys, header = defaultKeyHeader, origin, authorization }: GuardedRequest,
): Promise<CallResult> {
  const requestHeaders = {
    ...(keys.length > 0 && { [header]: [...keys] }),
    ...(origin !== undefined && { origin }),
    ...(authorization !== undefined && { authorization }),
  };
  const response = await send({ port }, "/tokens/card-1", { headers: requestHeaders });
  const { date: _date, ...headers } = response.headers;
  return {
    status: response.status,
    detail: response.status === 200 ? "" : parseDetail(response.body),
    headers,
    raw: JSON.stringify([response.status, headers, response.body]),
  };
}

function parseDetail(body: string): string {
  return JSON.parse(body).detail ?? "";
}

type Start = (guard: Guard, options: MiddlewareOptions<unknown>) => Promise<GuardedService>;

/** The behavior of every HTTP middleware. */
export function describeHttpMiddleware(name: string, start: Start): void {
  describeMiddleware(name, { protocol: "http", address: "127.0.0.1", start });

  describe(`${name}: bodies`, () => {
    it.each([
      [keys.unknown, 401, "unauthenticated", "Missing or invalid key"],
      [keys.missing, 403, "permission_denied", "Permission denied"],
      [keys.wrongOrigin, 403, "origin_not_allowed", "Origin not allowed"],
      [keys.wrongAddress, 403, "address_not_allowed", "Address not allowed"],
      [keys.invalid, 400, "invalid_request", "Invalid request"],
      [keys.unavailable, 503, "unavailable", "Key check unavailable"],
    ])("describe the problem for %s", async (key, status, code, title) => {
      const service = await start(createFakeGuard(), { permission: "token:read" });
      const { headers, raw, detail } = await service.call({ keys: [key] });
      await service.close();
      const [, , body] = JSON.parse(raw);
      expect(headers["content-type"]).toBe("application/problem+json");
      expect(headers["content-length"]).toBe(String(body.length));
      const type = "about:blank";
      expect(JSON.parse(body)).toEqual({ type, title, status, detail, code });
    });
  });
}
