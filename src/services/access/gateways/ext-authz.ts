import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { HeaderValueOption_HeaderAppendAction } from "../../../../gen/envoy/config/core/v3/base_pb.js";
import type { AttributeContext } from "../../../../gen/envoy/service/auth/v3/attribute_context_pb.js";
import type {
  Authorization,
  CheckResponseSchema,
} from "../../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import { ForwardAuthResponseSchema } from "../../../../gen/latchkey/v1/gateway_service_pb.js";
import { callOf } from "../../../call.js";
import { readPresentedKey } from "../../../contract/presented-key.js";
import { problemMediaType, quote } from "../../../contract/problems.js";
import { textHeaderFieldsOf } from "../../../contract/text-headers.js";
import type { Dependencies } from "../../../dependencies.js";
import { denyClient, type Problem, permissionDenied, problemBody } from "../../../errors.js";
import { mapMaybePromise } from "../../../lib/async.js";
import {
  type Allowed,
  type ClientRequest,
  type Denied,
  refuseInvalid,
  toIdentity,
} from "./gateway-check.js";
import type { Requirement } from "./route-matcher.js";

type Response = MessageInitShape<typeof CheckResponseSchema>;
type HttpHeaders = Readonly<Record<string, string>>;

/** The `context_extensions` of a route that name what its requests need. */
const extensions = ["latchkey-permission", "latchkey-container", "latchkey-token-id"] as const;

/** Decides for Envoy. */
export function createExtAuthzHandlers({
  gatewayCheck,
  addressOf,
  settings,
}: Pick<Dependencies, "gatewayCheck" | "addressOf" | "settings">): ServiceImpl<
  typeof Authorization
> {
  const places = { keyHeader: settings.keyHeader.toLowerCase(), bearer: true };

  function toClientRequest(
    attributes: AttributeContext | undefined,
    headers: HttpHeaders,
  ): ClientRequest {
    const { source, request, contextExtensions = {} } = attributes ?? {};
    const address = source?.address?.socketAddress?.address ?? "";
    return {
      key: readPresentedKey({ get: (name) => headers[name] }, places),
      requirement: readRequirement(contextExtensions),
      routed: request?.http,
      origin: headers.origin,
      get address() {
        // One that cannot be parsed is refused, unless the key does not need it.
        return addressOf({ address, headers }) || address;
      },
    };
  }

  return {
    check({ attributes }, context) {
      const { caller, call } = callOf(context);
      const headers = headersOf(attributes);
      const request = toClientRequest(attributes, headers);
      const problem = refuseRequirement(request, attributes);
      if (problem) {
        return denied({ denial: problem }, call.requestId);
      }
      return mapMaybePromise(gatewayCheck(caller, request), (outcome) =>
        "denial" in outcome
          ? denied(outcome, call.requestId)
          : allowed(outcome, removable(headers, request.key, places.keyHeader)),
      );
    },
  };
}

/** The requirement that the route sets for its requests. */
function readRequirement(from: Readonly<Record<string, string>>): Requirement | undefined {
  const [permission = "", container, tokenId] = extensions.map((name) => from[name]);
  return extensions.some((name) => name in from) ? { permission, container, tokenId } : undefined;
}

/** Denies a request whose requirement is not valid. Without a misspelled extension, the check would be weaker. */
function refuseRequirement(
  { requirement }: ClientRequest,
  attributes: AttributeContext | undefined,
): Problem | undefined {
  const unknown = Object.keys(attributes?.contextExtensions ?? {}).find(
    (name) => name.startsWith("latchkey-") && !extensions.some((known) => known === name),
  );
  return unknown === undefined
    ? requirement && refuseInvalid(requirement)
    : permissionDenied(
        `The gateway's requirement for this request is invalid: ${quote(unknown)} is not one of the context extensions ${extensions.join(", ")}.`,
      );
}

/** The headers of the client's request by their names in lower case. */
function headersOf(attributes: AttributeContext | undefined): HttpHeaders {
  const { headers = {}, headerMap } = attributes?.request?.http ?? {};
  if (!headerMap) {
    return headers;
  }
  const raw = new Map<string, string>();
  for (const { key, value, rawValue } of headerMap.headers) {
    const text = rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : value;
    const name = key.toLowerCase();
    raw.set(name, raw.has(name) ? `${raw.get(name)}, ${text}` : text);
  }
  return Object.fromEntries(raw);
}

const identityFields = textHeaderFieldsOf(ForwardAuthResponseSchema);
/** Some upstreams read underscores in the names of headers as hyphens. */
const identityPrefix = /^x[-_]latchkey[-_]/;

/** The headers that the upstream must not get from the client: its key, and forged identity headers. */
function removable(headers: HttpHeaders, key: string | undefined, keyHeader: string): string[] {
  const sent = Object.keys(headers).filter((name) => identityPrefix.test(name));
  // Envoy may be configured not to send all headers of the client.
  const names = new Set([...identityFields.map(({ header }) => header), ...sent]);
  const isBearer = key !== undefined && headers.authorization?.includes(key);
  return [keyHeader, ...(isBearer ? ["authorization"] : []), ...names];
}

function allowed(outcome: Allowed, toRemove: readonly string[]): Response {
  const identity = toIdentity(outcome);
  const set = new Map<string, string>();
  const metadata: JsonObject = {};
  for (const { header, name, format } of identityFields) {
    const value = format(identity);
    if (value !== undefined) {
      set.set(header, value);
      metadata[name] = value;
    }
  }
  return {
    status: { code: 0 },
    httpResponse: {
      case: "okResponse",
      value: {
        headers: [...set].map(toHeader),
        headersToRemove: toRemove.filter((name) => !set.has(name)),
      },
    },
    dynamicMetadata: metadata,
  };
}

function denied({ denial }: Denied, requestId: string): Response {
  const problem = denyClient(denial, undefined);
  const headers = { ...problem.headers, "content-type": problemMediaType };
  return {
    status: { code: problem.code, message: problem.rawMessage },
    httpResponse: {
      case: "deniedResponse",
      value: {
        status: { code: problem.status },
        headers: Object.entries(headers).map(toHeader),
        body: problemBody(problem, requestId),
      },
    },
  };
}

function toHeader([key, value]: readonly [string, string]) {
  const appendAction = HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD;
  return { header: { key, value }, appendAction };
}
