import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { GuardAnswer, Place, Token } from "../../src/client/check-request.js";
import type { Guard } from "../../src/client/guard.js";
import type { MiddlewareOptions } from "../../src/client/middleware.js";

/** Keys, by what the scripted guard says of them. Nothing of them may come back. */
export const keys = {
  good: "secret-good",
  unknown: "secret-unknown",
  expired: "secret-expired",
  unauthorized: "secret-unauthorized",
  missing: "secret-missing",
  elsewhere: "secret-elsewhere",
  stray: "secret-stray",
  remote: "secret-remote",
  invalid: "secret-invalid",
  unavailable: "secret-unavailable",
} as const;

const answers: Record<string, Partial<GuardAnswer>> = {
  [keys.good]: { allowed: true, transform: "mask", applicationId: "invoices" },
  [keys.unknown]: { reason: "unknown_key", detail: "The key is none of this tenant." },
  [keys.expired]: { reason: "expired", detail: "The key has expired; it was that of Invoices." },
  [keys.unauthorized]: { reason: "not_authorized", detail: "No backend authorized it yet." },
  [keys.missing]: { reason: "permission_missing", detail: "Invoices does not hold token:read." },
  [keys.elsewhere]: { reason: "no_rule_matches", detail: "The rules are about other tokens." },
  [keys.stray]: { reason: "origin_not_allowed", detail: "Not from there." },
  [keys.remote]: { reason: "address_not_allowed", detail: "Not from so far." },
  [keys.invalid]: { reason: "invalid_request", detail: "token.id: must be one line" },
  [keys.unavailable]: { reason: "unavailable", detail: "The service cannot be asked: 10.0.0.7" },
};

export interface ScriptedGuard extends Guard {
  /** What it was asked, in order. */
  readonly asked: [key: string, permission: string, token: Token | undefined][];
  /** From where the keys came, in the same order. */
  readonly places: (Place | undefined)[];
}

/** A guard that answers by the key alone, as a script says. */
export function createScriptedGuard(): ScriptedGuard {
  const asked: ScriptedGuard["asked"] = [];
  const places: ScriptedGuard["places"] = [];
  return {
    asked,
    places,
    async check(key, permission, token, place) {
      asked.push([key, permission, token]);
      places.push(place);
      return { allowed: false, source: "service", staleness: 0, ...answers[key] };
    },
    ready: async () => {},
    close: async () => {},
  };
}

/** What a caller got back. */
export interface Outcome {
  /** The status of HTTP or the code of gRPC: of HTTP 200 or of gRPC 0 where it was let in. */
  readonly status: number;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** All that came back, for a look whether something is in it. */
  readonly everything: string;
}

export interface Sent {
  /** The values of the header of the key, each in a line of its own. */
  readonly keys: readonly string[];
  readonly header?: string;
  readonly origin?: string;
}

export type Handled = () => GuardAnswer;

/** A service of one guarded method, on a free port of this machine. */
export interface GuardedService {
  call(sent: Sent): Promise<Outcome>;
  /** For each time that the handler ran, what asks `accessOf` as the handler does. */
  readonly handled: readonly Handled[];
  close(): Promise<void>;
}

interface Middleware {
  readonly protocol: "http" | "grpc";
  /** Where the framework says that a call on this machine comes from; absent where it does not say. */
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

const unauthenticatedDetail =
  "Send the key of an application or session in the SVC-API-KEY header. " +
  "The key is missing or not valid: it may be mistyped, replaced, expired, disabled or deleted.";

/** What every middleware does, whichever framework it is for. */
export function describeMiddleware(name: string, { protocol, address, start }: Middleware): void {
  const code = codes[protocol];

  describe(name, () => {
    let service: GuardedService | undefined;
    afterEach(() => service?.close());

    async function ask(sent: Sent, options: Partial<MiddlewareOptions<unknown>> = {}) {
      const guard = createScriptedGuard();
      service = await start(guard, { permission: "token:read", ...options });
      const outcome = await service.call(sent);
      expect(outcome.everything).not.toContain("secret-");
      const handled = service.handled.map((access) => access());
      return { ...outcome, asked: guard.asked, places: guard.places, handled };
    }

    it("lets in whoever may, and gives the answer to the handler", async () => {
      const { status, asked, handled } = await ask({ keys: [keys.good] });
      expect(status).toBe(code.ok);
      expect(asked).toEqual([[keys.good, "token:read", undefined]]);
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

    it("asks for the permission and the token that the options say", async () => {
      const { asked } = await ask(
        { keys: [keys.good] },
        { permission: () => "token:use", token: () => ({ id: "card-1", container: "/pci/" }) },
      );
      expect(asked).toEqual([[keys.good, "token:use", { id: "card-1", container: "/pci/" }]]);
    });

    it.each([
      ["no key", []],
      ["an empty key", [""]],
      ["a key sent twice", [keys.good, keys.good]],
      ["a list of keys", [`${keys.good}, ${keys.good}`]],
    ])("refuses %s without asking", async (_case, sent) => {
      const { status, detail, headers, asked, handled } = await ask({ keys: sent });
      expect({ status, detail }).toEqual({
        status: code.unauthenticated,
        detail: unauthenticatedDetail,
      });
      expect(headers["www-authenticate"]).toBe('ApiKey realm="latchkey", header="SVC-API-KEY"');
      expect(asked).toEqual([]);
      expect(handled).toEqual([]);
    });

    it("answers the same for no key, an unknown one and an expired one", async () => {
      const answered = [];
      for (const sent of [[], [keys.unknown], [keys.expired]]) {
        const { status, everything, handled } = await ask({ keys: sent });
        answered.push({ status, everything, handled });
        await service?.close();
      }
      expect(answered[0]).toMatchObject({ status: code.unauthenticated, handled: [] });
      expect(answered[1]).toEqual(answered[0]);
      expect(answered[2]).toEqual(answered[0]);
    });

    it("asks to try again where the guard cannot find out, and tells no more", async () => {
      const { status, detail, headers, handled } = await ask({ keys: [keys.unavailable] });
      expect({ status, detail }).toEqual({
        status: code.unavailable,
        detail: "The key cannot be checked now. Try again soon.",
      });
      expect(headers["retry-after"]).toBe("1");
      expect(handled).toEqual([]);
    });

    it("says what is wrong with an invalid question", async () => {
      const { status, detail, handled } = await ask({ keys: [keys.invalid] });
      expect({ status, detail }).toEqual({
        status: code.invalid,
        detail: "token.id: must be one line",
      });
      expect(handled).toEqual([]);
    });

    it.each([
      [keys.unauthorized, "No backend authorized it yet."],
      [keys.missing, "Invoices does not hold token:read."],
      [keys.elsewhere, "The rules are about other tokens."],
      [keys.stray, "Not from there."],
      [keys.remote, "Not from so far."],
      ["another denial", "The key does not allow this."],
    ])("says why a key may not: %s", async (key, why) => {
      const { status, detail, handled } = await ask({ keys: [key] });
      expect({ status, detail }).toEqual({ status: code.denied, detail: why });
      expect(handled).toEqual([]);
    });

    it("finds the key in another header, and then only there", async () => {
      const keyHeader = "X-Shop-Key";
      const there = await ask({ keys: [keys.good], header: keyHeader }, { keyHeader });
      expect(there.status).toBe(code.ok);
      await service?.close();
      const elsewhere = await ask({ keys: [keys.good] }, { keyHeader });
      expect(elsewhere.status).toBe(code.unauthenticated);
      expect(elsewhere.headers["www-authenticate"]).toContain('header="X-Shop-Key"');
    });

    it("tells the guard where the key came from", async () => {
      const origin = "https://shop.example.com";
      const { places } = await ask({ keys: [keys.good], origin });
      expect(places).toEqual([{ origin, address }]);
      await service?.close();
      const without = await ask({ keys: [keys.good] }, { address: () => "203.0.113.7" });
      expect(without.places).toEqual([{ origin: undefined, address: "203.0.113.7" }]);
    });

    it.each<[string, Partial<MiddlewareOptions<unknown>>]>([
      ["permission", { permission: fail }],
      ["token", { token: fail }],
      ["address", { address: fail }],
    ])("lets nobody in where the function for the %s throws", async (_name, options) => {
      const { status, everything, asked, handled } = await ask({ keys: [keys.good] }, options);
      expect(status).toBe(code.broken);
      expect(everything).not.toContain("mistake");
      expect(asked).toEqual([]);
      expect(handled).toEqual([]);
    });

    it("lets nobody in where the guard throws, which it never should", async () => {
      const broken = { ...createScriptedGuard(), check: async () => fail() };
      service = await start(broken, { permission: "token:read" });
      expect(await service.call({ keys: [keys.good] })).toMatchObject({ status: code.broken });
      expect(service.handled).toEqual([]);
    });
  });
}

function fail(): never {
  throw new Error("a mistake of the developer");
}
