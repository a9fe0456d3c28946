import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ForwardAuthRequest,
  ForwardAuthResponse,
  GatewayService,
} from "../../../../gen/latchkey/v1/gateway_service_pb.js";
import { type Call, callOf } from "../../../auth/caller.js";
import type { ForwardedAddressOf } from "../../../auth/caller-address.js";
import { readPresentedKey } from "../../../contract/presented-key.js";
import { denyClient, invalidRequest, type Problem } from "../../../errors.js";
import { mapMaybePromise } from "../../../lib/async.js";
import type { Allowed, ClientRequest, GatewayCheck } from "./gateway-check.js";
import type { RoutedRequest } from "./route-matcher.js";

interface ForwardAuthOptions {
  readonly check: GatewayCheck;
  readonly forwardedAddressOf: ForwardedAddressOf;
  readonly keyHeader: string;
}

/** Decides for gateways that send the headers of a client's request to an HTTP endpoint. */
export function createForwardAuthHandlers({
  check,
  forwardedAddressOf,
  keyHeader,
}: ForwardAuthOptions): ServiceImpl<typeof GatewayService> {
  const places = { keyHeader: keyHeader.toLowerCase(), bearer: true };

  function toClientRequest(request: ForwardAuthRequest, call: Call): ClientRequest {
    const { permission, container, tokenId } = request;
    const requirement = permission === undefined ? undefined : { permission, container, tokenId };
    return {
      key: readPresentedKey(call.header, places),
      requirement,
      routed: requirement ? undefined : readRouted(call.header),
      origin: call.header.get("origin") ?? undefined,
      get address() {
        return forwardedAddressOf(call.peer);
      },
    };
  }

  return {
    forwardAuth(request, context) {
      const { caller, call } = callOf(context);
      if (request.permission === undefined && isAmbiguous(call.header)) {
        throw denyClient(ambiguousRequest(), request.denyStatus);
      }
      return mapMaybePromise(check(caller, toClientRequest(request, call)), (outcome) => {
        if ("denial" in outcome) {
          throw denyClient(outcome.denial, request.denyStatus);
        }
        return toIdentity(outcome);
      });
    },
  };
}

/** The owner of the client's key, for the upstream. */
export function toIdentity({ subject, result }: Allowed): ForwardAuthResponse {
  const { application, session } = subject;
  return {
    $typeName: "latchkey.v1.ForwardAuthResponse",
    applicationId: application.id,
    tenantId: application.tenantId,
    sessionId: session?.id,
    transform: result.transform,
    expiresAt: result.expiresAt,
  } as ForwardAuthResponse;
}

/** Whether both families of headers describe the request. The gateway sets one, so the other is the client's. */
function isAmbiguous(header: Call["header"]): boolean {
  return header.get("x-forwarded-uri") !== null && readOriginal(header) !== undefined;
}

function ambiguousRequest(): Problem {
  return invalidRequest({
    field: "x-original-uri",
    message:
      "cannot be combined with X-Forwarded-Uri: the gateway must set one and remove the other",
  });
}

/** The request of the client, from the headers of Traefik and Caddy, or from those of nginx. */
function readRouted(header: Call["header"]): RoutedRequest | undefined {
  const uri = header.get("x-forwarded-uri");
  return uri === null
    ? readOriginal(header)
    : {
        path: uri,
        host: header.get("x-forwarded-host") ?? "",
        method: header.get("x-forwarded-method") ?? "",
      };
}

/** `X-Original-URL`, which some versions of nginx's ingress controller send, is an absolute URL. */
function readOriginal(header: Call["header"]): RoutedRequest | undefined {
  const method = header.get("x-original-method") ?? "";
  const uri = header.get("x-original-uri");
  if (uri !== null) {
    return { path: uri, host: header.get("x-original-host") ?? "", method };
  }
  const [, host = "", path] =
    /^https?:\/\/([^/?#]*)([^#]*)/.exec(header.get("x-original-url") ?? "") ?? [];
  return path === undefined ? undefined : { path: path || "/", host, method };
}
