import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { RequestContext, Token } from "../../src/client/check-request.js";
import type { Decision } from "../../src/client/decision.js";
import type { Guard } from "../../src/client/guard.js";
import type { MiddlewareOptions } from "../../src/client/middleware.js";

/** Keys by the decision of the fake guard. No response may contain them. */
export const keys = {
  good: "secret-good",
  unknown: "secret-unknown",
  expired: "secret-expired",
  unauthorized: "secret-unauthorized",
  missing: "secret-missing",
  otherToken: "secret-other-token",
  wrongOrigin: "secret-wrong-origin",
  wrongAddress: "secret-wrong-address",
  invalid: "secret-invalid",
  unavailable: "secret-unavailable",
} as const;

const decisions: Record<string, Partial<Decision>> = {
  [keys.good]: { allowed: true, transform: "mask", applicationId: "invoices" },
  [keys.unknown]: { reason: "unknown_key", detail: "The key does not belong to this tenant." },
  [keys.expired]: { reason: "expired", detail: "The key of Invoices has expired." },
  [keys.unauthorized]: { reason: "not_authorized", detail: "No backend authorized it yet." },
  [keys.missing]: { reason: "permission_missing", detail: "Invoices does not hold token:read." },
  [keys.otherToken]: { reason: "no_rule_matches", detail: "No rule matches this token." },
  [keys.wrongOrigin]: { reason: "origin_not_allowed", detail: "The origin is not allowed." },
  [keys.wrongAddress]: { reason: "address_not_allowed", detail: "The address is not allowed." },
  [keys.invalid]: { reason: "invalid_request", detail: "token.id: must be one line" },
  [keys.unavailable]: { reason: "unavailable", detail: "Latchkey is unreachable: 10.0.0.7" },
};

interface FakeGuard extends Guard {
  /** The checks so far, in order. */
  readonly checks: [key: string | undefined, permission: string, token: Token | undefined][];
  /** The contexts of the checks, in the same order. */
  readonly contexts: (RequestContext | undefined)[];
}

/** A guard whose decision depends only on the key. */
export function createFakeGuard(): FakeGuard {
  const checks: FakeGuard["checks"] = [];
  const contexts: FakeGuard["contexts"] = [];
  return {
    checks,
    contexts,
    async check(key, permission, token, context) {
      checks.push([key, permission, token]);
      contexts.push(context);
      return { allowed: false, source: "service", staleness: 0, ...decisions[key ?? ""] };
    },
    ready: async () => {},
    close: async () => {},
  };
}

/** The response of a guarded service. */
export interface CallResult {
  /** The HTTP status or the gRPC code: 200 or 0 if allowed. */
  readonly status: number;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The complete response as text. */
  readonly raw: string;
}

export interface GuardedRequest {
  /** The values of the key header, each sent as a separate header. */
  readonly keys: readonly string[];
  readonly header?: string;
  readonly origin?: string;
  readonly authorization?: string;
}

/** Calls `accessOf` like a handler. */
export type AccessGetter = () => Decision;

/** A service with one guarded method on a free local port. */
export interface GuardedService {
  call(request: GuardedRequest): Promise<CallResult>;
  /** One for each run of the handler. */
  readonly handled: readonly AccessGetter[];
  close(): Promise<void>;
}

interface Middleware {
  readonly protocol: "http" | "grpc";
  /** The client address that the framework reports for a local call, if any. */
  readonly address?: string;
  start(guard: Guard, options: MiddlewareOptions<unknown>): Promise<GuardedService>;
}

const codes = {
  http: { ok: 200, unauthenticated: 401, denied: 403, invalid: 400, unavailable: 503, broken: 500 },
  grpc: {
    ok: 0,
    unauthenticated: Code.Unauthenticated,
    denied: Code.PermissionDenied,
    invalid: Code.InvalidArgument,
    unavailable: Code.Unavailable,
    broken: Code.Internal,
  },
};

const noKey = "The request has no key.";
const severalKeys = "The request has several keys: send one.";
const sendKey = "Send the key of an application or session in the SVC-API-KEY header.";
const sendEither = sendKey.replace(/\.$/, " or Authorization: Bearer.");

/** The behavior of the middleware for every framework. */
export function describeMiddleware(name: string, { protocol, address, start }: Middleware): void {
  const code = codes[protocol];

  describe(name, () => {
    let service: GuardedService | undefined;
    afterEach(() => service?.close());

    async function call(
      request: GuardedRequest,
      options: Partial<MiddlewareOptions<unknown>> = {},
    ) {
      const guard = createFakeGuard();
      service = await start(guard, { permission: "token:read", ...options });
      const outcome = await service.call(request);
      expect(outcome.raw).not.toContain("secret-");
      const handled = service.handled.map((getAccess) => getAccess());
      return { ...outcome, checks: guard.checks, contexts: guard.contexts, handled };
    }

    it("passes on an allowed request with its decision", async () => {
      const { status, checks, handled } = await call({ keys: [keys.good] });
      expect(status).toBe(code.ok);
      expect(checks).toEqual([[keys.good, "token:read", undefined]]);
      expect(handled).toEqual([
        {
          allowed: true,
          transform: "mask",
          applicationId: "invoices",
          source: "service",
          staleness: 0,
        },
      ]);
    });

    it("checks the permission and the token of the options", async () => {
      const { checks } = await call(
        { keys: [keys.good] },
        { permission: () => "token:use", token: () => ({ id: "card-1", container: "/pci/" }) },
      );
      expect(checks).toEqual([[keys.good, "token:use", { id: "card-1", container: "/pci/" }]]);
    });

    it.each([
      ["no key", [], noKey],
      ["an empty key", [""], noKey],
      ["a key sent twice", [keys.good, keys.good], severalKeys],
      ["a list of keys", [`${keys.good}, ${keys.good}`], severalKeys],
    ])("refuses %s without a check", async (_case, sent, why) => {
      const { status, detail, headers, checks, handled } = await call({ keys: sent });
      expect({ status, detail }).toEqual({
        status: code.unauthenticated,
        detail: `${why} ${sendKey}`,
      });
      expect(headers["www-authenticate"]).toBe('ApiKey realm="latchkey", header="SVC-API-KEY"');
      expect(checks).toEqual([]);
      expect(handled).toEqual([]);
    });

    it("returns the same response for an unknown and an expired key", async () => {
      const responses = [];
      for (const sent of [[keys.unknown], [keys.expired]]) {
        const { status, raw, handled } = await call({ keys: sent });
        responses.push({ status, raw, handled });
        await service?.close();
      }
      expect(responses[0]).toMatchObject({ status: code.unauthenticated, handled: [] });
      expect(responses[1]).toEqual(responses[0]);
    });

    it("responds with a retry hint and no details if the guard fails closed", async () => {
      const { status, detail, headers, handled } = await call({ keys: [keys.unavailable] });
      expect({ status, detail }).toEqual({
        status: code.unavailable,
        detail: "The key cannot be checked now. Try again soon.",
      });
      expect(headers["retry-after"]).toBe("1");
      expect(handled).toEqual([]);
    });

    it("reports an invalid check", async () => {
      const { status, detail, handled } = await call({ keys: [keys.invalid] });
      expect({ status, detail }).toEqual({
        status: code.invalid,
        detail: "token.id: must be one line",
      });
      expect(handled).toEqual([]);
    });

    it.each([
      [keys.unauthorized, "No backend authorized it yet."],
      [keys.missing, "Invoices does not hold token:read."],
      [keys.otherToken, "No rule matches this token."],
      [keys.wrongOrigin, "The origin is not allowed."],
      [keys.wrongAddress, "The address is not allowed."],
      ["another denial", "Permission denied."],
    ])("reports why a key is denied: %s", async (key, why) => {
      const { status, detail, handled } = await call({ keys: [key] });
      expect({ status, detail }).toEqual({ status: code.denied, detail: why });
      expect(handled).toEqual([]);
    });

    it("reads the key from the configured header only", async () => {
      const keyHeader = "X-Shop-Key";
      const right = await call({ keys: [keys.good], header: keyHeader }, { keyHeader });
      expect(right.status).toBe(code.ok);
      await service?.close();
      const wrong = await call({ keys: [keys.good] }, { keyHeader });
      expect(wrong.status).toBe(code.unauthenticated);
      expect(wrong.headers["www-authenticate"]).toContain('header="X-Shop-Key"');
    });

    it("ignores Authorization by default", async () => {
      const { status, detail, checks } = await call({
        keys: [],
        authorization: `Bearer ${keys.good}`,
      });
      expect({ status, detail }).toEqual({
        status: code.unauthenticated,
        detail: `The key is in Authorization, which this call does not read. ${sendKey}`,
      });
      expect(checks).toEqual([]);
    });

    it.each<[string, GuardedRequest]>([
      ["from Authorization", { keys: [], authorization: `Bearer ${keys.good}` }],
      ["from the key header", { keys: [keys.good] }],
      ["from both, if equal", { keys: [keys.good], authorization: `bearer ${keys.good}` }],
      [
        "from the key header, if Authorization carries something else",
        { keys: [keys.good], authorization: "Bearer secret-of-another-service" },
      ],
    ])("reads the key %s with the option bearer", async (_where, request) => {
      const { status, checks } = await call(request, { bearer: true });
      expect(status).toBe(code.ok);
      expect(checks).toEqual([[keys.good, "token:read", undefined]]);
    });

    it("refuses two different keys without a check", async () => {
      const { status, detail, checks, handled } = await call(
        { keys: [keys.good], authorization: "Bearer lk_prv_secret-other" },
        { bearer: true },
      );
      expect({ status, detail }).toEqual({
        status: code.invalid,
        detail: "authorization: carries another key than the key header: send only one of them",
      });
      expect(checks).toEqual([]);
      expect(handled).toEqual([]);
    });

    it.each<[string, GuardedRequest, string]>([
      ["an empty bearer key", { keys: [], authorization: "Bearer " }, noKey],
      ["another scheme", { keys: [], authorization: `Basic ${btoa(`:${keys.good}`)}` }, noKey],
      [
        "a list of bearer keys",
        { keys: [], authorization: `Bearer ${keys.good},${keys.good}` },
        severalKeys,
      ],
      [
        "a key header sent twice beside a bearer key",
        { keys: [keys.good, keys.good], authorization: `Bearer ${keys.good}` },
        severalKeys,
      ],
    ])("refuses %s without a check", async (_case, request, why) => {
      const { status, detail, headers, checks } = await call(request, { bearer: true });
      expect({ status, detail }).toEqual({
        status: code.unauthenticated,
        detail: `${why} ${sendEither}`,
      });
      expect(headers["www-authenticate"]).toMatch(/, Bearer realm="latchkey"$/);
      expect(checks).toEqual([]);
    });

    it("passes the origin and the address to the guard", async () => {
      const origin = "https://shop.example.com";
      const { contexts } = await call({ keys: [keys.good], origin });
      expect(contexts).toEqual([{ origin, address }]);
      await service?.close();
      const without = await call({ keys: [keys.good] }, { address: () => "203.0.113.7" });
      expect(without.contexts).toEqual([{ origin: undefined, address: "203.0.113.7" }]);
    });

    it.each<[string, Partial<MiddlewareOptions<unknown>>]>([
      ["permission", { permission: fail }],
      ["token", { token: fail }],
      ["address", { address: fail }],
    ])("refuses the request if the function for the %s throws", async (_name, options) => {
      const { status, raw, checks, handled } = await call({ keys: [keys.good] }, options);
      expect(status).toBe(code.broken);
      expect(raw).not.toContain("bug");
      expect(checks).toEqual([]);
      expect(handled).toEqual([]);
    });

    it("refuses the request if the guard throws", async () => {
      const broken = { ...createFakeGuard(), check: async () => fail() };
      service = await start(broken, { permission: "token:read" });
      expect(await service.call({ keys: [keys.good] })).toMatchObject({ status: code.broken });
      expect(service.handled).toEqual([]);
    });
  });
}

function fail(): never {
  throw new Error("a bug in the options");
}
