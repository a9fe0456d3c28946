import { create } from "@bufbuild/protobuf";
import type {
  CheckAccessRequest,
  TokenReference,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import {
  ForwardAuthRequestSchema,
  type ForwardAuthResponse,
} from "../../../../gen/latchkey/v1/gateway_service_pb.js";
import type { Caller } from "../../../auth/caller.js";
import { differentKeys } from "../../../contract/presented-key.js";
import {
  addressNotAllowed,
  invalidRequest,
  originNotAllowed,
  Problem,
  permissionDenied,
  unauthenticated,
} from "../../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../../lib/async.js";
import type { RateLimits } from "../../../limits/rate-limits.js";
import { validateMessage } from "../../../validation/validate.js";
import type { CheckResult, Checks } from "../check.js";
import type { Requirement, RoutedRequest } from "./route-matcher.js";
import type { Routes } from "./routes.js";

/** The request of a client of a gateway. */
export interface ClientRequest {
  /** The client's key, the empty string without one, or `undefined` if the request has two different keys. */
  readonly key: string | undefined;
  /** The requirement that the gateway sends, validated. If absent, the routes decide. */
  readonly requirement: Requirement | undefined;
  /** The request as the routes see it, or the problem of its description. */
  readonly routed: RoutedRequest | Problem | undefined;
  readonly origin: string | undefined;
  /** The address of the client. Most keys do not need it, so it may be read on demand. */
  readonly address: string;
}

/** An allowed request. */
export interface Allowed {
  /** The owner of the client's key. */
  readonly owner: Caller;
  readonly result: CheckResult;
}

/** A denied request, and the error for the client. */
export interface Denied {
  readonly denial: Problem;
}

/** Decides about the request of a client by the check that other services use. Throws if it cannot decide. */
export type GatewayCheck = (
  gateway: Caller,
  request: ClientRequest,
) => MaybePromise<Allowed | Denied>;

interface GatewayCheckOptions {
  readonly checks: Checks;
  readonly routes: Routes;
  readonly rateLimits: Pick<RateLimits, "countCall" | "countFailure">;
  readonly keyHeader: string;
}

export function createGatewayCheck({
  checks,
  routes,
  rateLimits,
  keyHeader,
}: GatewayCheckOptions): GatewayCheck {
  /** Checks the client's key. Its rate limits apply as if it called this service itself. */
  function check(
    gateway: Caller,
    client: ClientRequest,
    { permission, container, tokenId }: Requirement,
  ): MaybePromise<Allowed | Denied> {
    const request = {
      $typeName: "latchkey.v1.CheckAccessRequest",
      principal: { case: "key", value: client.key ?? "" },
      permission,
      token: toToken(container, tokenId),
      origin: client.origin,
      get address() {
        return client.address;
      },
    } as CheckAccessRequest;
    const peer = {
      get address() {
        return client.address;
      },
      headers: noHeaders,
    };
    return mapMaybePromise(
      checks.evaluateWithPrincipal(gateway, request),
      ({ principal, result }) => {
        const { owner, inactiveReason } = principal;
        if (!owner || inactiveReason) {
          return mapMaybePromise(rateLimits.countFailure(peer), (refusal) => ({
            denial: refusal ?? unauthenticated({ keyHeader, key: client.key, bearer: true }),
          }));
        }
        if (result instanceof Problem) {
          return { denial: result };
        }
        const denial = result.allowed ? undefined : toDenial(result, request);
        if (denial && isOutOfPlace(result.reason)) {
          return { denial };
        }
        return mapMaybePromise(rateLimits.countCall(owner, peer), (refusal) => {
          const problem = refusal ?? denial;
          return problem ? { denial: problem } : { owner, result };
        });
      },
    );
  }

  return (gateway, request) => {
    if (request.key === undefined) {
      return { denial: invalidRequest({ field: "authorization", message: differentKeys }) };
    }
    if (request.key === "") {
      return { denial: unauthenticated({ keyHeader, key: "", bearer: true }) };
    }
    const { requirement, routed } = request;
    if (requirement) {
      return check(gateway, request, requirement);
    }
    if (routed instanceof Problem) {
      return { denial: routed };
    }
    return mapMaybePromise(routed && routes.match(routed), (matched) => {
      if (!matched) {
        return { denial: noRoute(routed) };
      }
      const denial = refuseInvalid(matched);
      return denial ? { denial } : check(gateway, request, matched);
    });
  };
}

/** Denies a request whose requirement is not valid: it contains text of the request or of a configuration. */
export function refuseInvalid(requirement: Partial<Requirement>): Problem | undefined {
  const message = create(ForwardAuthRequestSchema, { ...requirement });
  const problem = validateMessage(ForwardAuthRequestSchema, message);
  return (
    problem &&
    permissionDenied(
      `The gateway's requirement for this request is invalid: ${problem.rawMessage}.`,
    )
  );
}

/** The owner of the client's key, for the upstream. */
export function toIdentity({ owner, result }: Allowed): ForwardAuthResponse {
  const { application, session } = owner;
  return {
    $typeName: "latchkey.v1.ForwardAuthResponse",
    applicationId: application.id,
    tenantId: application.tenantId,
    sessionId: session?.id,
    transform: result.transform,
    expiresAt: result.expiresAt,
  } as ForwardAuthResponse;
}

const noHeaders = {};

function toToken(
  container: string | undefined,
  id: string | undefined,
): TokenReference | undefined {
  return container === undefined && id === undefined
    ? undefined
    : ({ $typeName: "latchkey.v1.TokenReference", container, id } as TokenReference);
}

/** Whether the key was used from a wrong place, which must not exhaust the owner's rate. */
function isOutOfPlace(reason: string | undefined): boolean {
  return reason === "origin_not_allowed" || reason === "address_not_allowed";
}

/** The error for a client whose key does not allow its request. */
function toDenial(
  { reason, detail }: CheckResult,
  { origin, address = "" }: CheckAccessRequest,
): Problem {
  switch (reason) {
    case "origin_not_allowed":
      return originNotAllowed(origin);
    case "address_not_allowed":
      return addressNotAllowed(address);
    default:
      return permissionDenied(detail ?? "");
  }
}

function noRoute(request: RoutedRequest | undefined): Problem {
  return permissionDenied(
    request
      ? "No route of the gateway matches this request, or the gateway does not send its host, method and path. Contact its operator."
      : "The gateway does not specify which permission this request needs. Contact its operator.",
  );
}
