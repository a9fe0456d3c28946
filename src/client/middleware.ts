import { Code } from "@connectrpc/connect";
import { defaultKeyHeader } from "../contract/headers.js";
import { invalidKeyResponse, type RefusedCredentials } from "../contract/invalid-key.js";
import { differentKeys, readPresentedKey } from "../contract/presented-key.js";
import {
  externalProblemType,
  type ProblemCode,
  problemCatalogue,
  problemMediaType,
} from "../contract/problems.js";
import type { Token } from "./check-request.js";
import type { Decision } from "./decision.js";
import type { Guard } from "./guard.js";

/** How a request is checked, in every framework. */
export interface MiddlewareOptions<Request> {
  /** The permission that a request requires. */
  readonly permission: string | ((request: Request) => string);
  /** The token of a request, if any: a data item in the vault of your service. */
  readonly token?: ((request: Request) => Token | undefined) | undefined;
  /** The header that carries the caller's key; `SVC-API-KEY` by default. */
  readonly keyHeader?: string | undefined;
  /** Whether `Authorization: Bearer` may carry the key too; `false` by default. */
  readonly bearer?: boolean | undefined;
  /**
   * The IP address of the client, for keys that are restricted to networks. By
   * default the one that the framework provides.
   */
  readonly address?: ((request: Request) => string | undefined) | undefined;
}

type Result =
  | { readonly decision: Decision; readonly refusal?: undefined }
  | { readonly decision?: undefined; readonly refusal: Refusal };

/** Checks the requests of a framework with a guard. */
interface Authorizer<Request> {
  /** The name of the header that carries the key, in lower case. */
  readonly keyHeader: string;

  /** Throws if a function in the options throws. Then the request must be refused too. */
  authorize(request: Request, received: Received): Promise<Result>;
}

/** The parts of a request that a check needs. */
interface Received {
  /** The values of the key header. */
  readonly key: HeaderValues;
  /** The values of the `Authorization` header. */
  readonly authorization?: HeaderValues;
  /** The values of the `Origin` header. */
  readonly origin: HeaderValues;
  /** The IP address of the client. */
  readonly address?: string | undefined;
}

/** The values of a header, in the types that frameworks use. */
type HeaderValues = string | readonly unknown[] | null | undefined;

export function createAuthorizer<Request>(
  guard: Guard,
  options: MiddlewareOptions<Request>,
): Authorizer<Request> {
  const { permission, token, address, keyHeader = defaultKeyHeader, bearer = false } = options;

  /** The key, or why there is none. */
  function readKey({ key, authorization }: Received): string | Refusal {
    if (hasSeveral(key)) {
      return unauthenticated({ keyHeader, bearer, isRepeated: true });
    }
    const headers = new Map([
      ["key", singleText(key)],
      ["authorization", singleText(authorization)],
    ]);
    const presented = readPresentedKey(headers, { keyHeader: "key", bearer });
    if (presented === undefined) {
      return refusal("invalid_request", `authorization: ${differentKeys}`);
    }
    const hasUnreadAuthorization = !bearer && singleText(authorization) !== undefined;
    const isRepeated = hasSeveral(presented);
    return presented === "" || isRepeated
      ? unauthenticated({ keyHeader, bearer, key: presented, isRepeated, hasUnreadAuthorization })
      : presented;
  }

  return {
    keyHeader: keyHeader.toLowerCase(),

    async authorize(request, received) {
      const key = readKey(received);
      if (typeof key !== "string") {
        return { refusal: key };
      }
      const required = typeof permission === "string" ? permission : permission(request);
      const context = {
        origin: singleText(received.origin),
        address: address ? address(request) : received.address,
      };
      const decision = await guard.check(key, required, token?.(request), context);
      return decision.allowed
        ? { decision }
        : { refusal: toRefusal(decision, { keyHeader, bearer, key }) };
    },
  };
}

/** Whether there are several keys, which are ambiguous. Node and Headers join the values of a repeated header with a comma. */
function hasSeveral(values: HeaderValues): boolean {
  const all = [values ?? []].flat();
  return all.length > 1 || singleText(all)?.includes(",") === true;
}

function singleText(values: HeaderValues): string | undefined {
  const [text, ...others] = [values ?? []].flat();
  return typeof text === "string" && others.length === 0 ? text : undefined;
}

/** The response to a refused request, for HTTP and gRPC. */
export interface Refusal {
  readonly code: string;
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

function toRefusal({ reason, detail }: Decision, credentials: RefusedCredentials): Refusal {
  switch (reason) {
    case "unknown_key":
    case "expired":
      return unauthenticated(credentials);
    case "unavailable":
      return unavailable;
    case "invalid_request":
    case "origin_not_allowed":
    case "address_not_allowed":
      return refusal(reason, detail);
    default:
      return refusal("permission_denied", detail);
  }
}

function refusal(
  code: ProblemCode,
  detail: string | undefined,
  headers: Refusal["headers"] = {},
): Refusal {
  const type = problemCatalogue[code];
  return { ...type, code, detail: detail ?? `${type.title}.`, headers };
}

/** The same response for every key of the right form, as from the service itself. */
function unauthenticated(credentials: RefusedCredentials): Refusal {
  const { detail, headers } = invalidKeyResponse(credentials);
  return refusal("unauthenticated", detail, headers);
}

/** The reason is for the log of your service, not for its callers. */
const unavailable: Refusal = {
  code: "unavailable",
  status: 503,
  grpc: Code.Unavailable,
  title: "Key check unavailable",
  detail: "The key cannot be checked now. Try again soon.",
  headers: { "retry-after": "1" },
};

export function problemHeaders({ headers }: Refusal): Record<string, string> {
  return { ...headers, "content-type": problemMediaType };
}

/** A problem document of RFC 9457. */
export function problemBody({ code, title, status, detail }: Refusal): string {
  return JSON.stringify({ type: externalProblemType, title, status, detail, code });
}

const decisions = new WeakMap<object, Decision>();

export function saveDecision(request: object, decision: Decision): void {
  decisions.set(request, decision);
}

/** Throws if the request was not checked. */
export function savedDecision(request: object): Decision {
  return requireDecision(decisions.get(request));
}

export function requireDecision(decision: Decision | undefined): Decision {
  if (!decision) {
    throw new Error("The request was not checked. Install the guard before this handler.");
  }
  return decision;
}
