import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ForwardAuthRequest,
  GatewayService,
} from "../../../../gen/latchkey/v1/gateway_service_pb.js";
import { type Call, callOf } from "../../../call.js";
import { readPresentedKey } from "../../../contract/presented-key.js";
import type { Dependencies } from "../../../dependencies.js";
import { denyClient, invalidRequest, type Problem } from "../../../errors.js";
import { mapMaybePromise } from "../../../lib/async.js";
import { type ClientRequest, toIdentity } from "./gateway-check.js";
import type { RoutedRequest } from "./route-matcher.js";

/** Decides for gateways that send the headers of a client's request to an HTTP endpoint. */
export function createForwardAuthHandlers({
  gatewayCheck,
  forwardedAddressOf,
  settings,
}: Pick<Dependencies, "gatewayCheck" | "forwardedAddressOf" | "settings">): ServiceImpl<
  typeof GatewayService
> {
  const places = { keyHeader: settings.keyHeader.toLowerCase(), bearer: true };

  function toClientRequest(
    { permission, container, tokenId }: ForwardAuthRequest,
    call: Call,
  ): ClientRequest {
    const requirement = permission === undefined ? undefined : { permission, container, tokenId };
    return {
      key: call.isRepeated("authorization") ? undefined : readPresentedKey(call.header, places),
      requirement,
      routed: requirement ? undefined : readRouted(call),
      origin: call.header.get("origin") ?? undefined,
      get address() {
        return forwardedAddressOf(call.peer);
      },
    };
  }

  return {
    forwardAuth(request, context) {
      const { caller, call } = callOf(context);
      const status = request.denyStatus === undefined ? undefined : Number(request.denyStatus);
      const client = toClientRequest(request, call);
      return mapMaybePromise(gatewayCheck(caller, client), (outcome) => {
        if ("denial" in outcome) {
          throw denyClient(outcome.denial, status);
        }
        return toIdentity(outcome);
      });
    },
  };
}

/** The headers that describe the request: the family of Traefik and Caddy, and those of nginx. */
const families = [
  { uri: "x-forwarded-uri", host: "x-forwarded-host", method: "x-forwarded-method" },
  { uri: "x-original-uri", host: "x-original-host", method: "x-original-method" },
  // An absolute URL, which nginx's ingress controller sends.
  { uri: "x-original-url", host: undefined, method: "x-original-method" },
] as const;

/**
 * The request of the client as the gateway describes it, or a problem if that is
 * ambiguous. The gateway sets one family of headers, each of them once, so others
 * come from the client.
 */
function readRouted(call: Call): RoutedRequest | Problem | undefined {
  const { header } = call;
  const [family, other] = families.filter(({ uri }) => header.get(uri) !== null);
  if (!family) {
    return undefined;
  }
  if (other || Object.values(family).some((name) => name && call.isRepeated(name))) {
    return invalidRequest({
      field: family.uri,
      message:
        "is not the only description of the request: the gateway must set one family of headers, " +
        "each header once, and remove the others",
    });
  }
  const uri = header.get(family.uri) ?? "";
  const method = header.get(family.method) ?? "";
  if (family.host !== undefined) {
    return { path: uri, host: header.get(family.host) ?? "", method };
  }
  const [, host = "", path = ""] = /^https?:\/\/([^/?#]*)(.*)$/s.exec(uri) ?? [];
  return { path: path.startsWith("?") ? `/${path}` : path || "/", host, method };
}
