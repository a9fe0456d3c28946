import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.js";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthZenService } from "../../gen/latchkey/v1/authzen_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { GatewayService } from "../../gen/latchkey/v1/gateway_service_pb.js";
import { IntrospectionService } from "../../gen/latchkey/v1/introspection_service_pb.js";
import { KeyService } from "../../gen/latchkey/v1/key_service_pb.js";
import {
  type Access,
  access,
  CallerType,
  http_header,
  http_status,
  ignores_other_types,
  known_permissions,
  type Permission,
  permissions,
  type RestFormat,
  replayable,
  rest_format,
  text_header,
} from "../../gen/latchkey/v1/options_pb.js";
import { OverviewService } from "../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import type { ApplicationType } from "./grants.js";

/** The services of the contract. The options of each method are in its proto. */
export const services: readonly DescService[] = [
  ApplicationService,
  SessionService,
  AccessService,
  EventService,
  GatewayService,
  KeyService,
  AuthZenService,
  IntrospectionService,
  OverviewService,
];

/** The permissions that Latchkey defines. */
export const ownPermissions: readonly Permission[] = services.flatMap((service) =>
  getOption(service, permissions),
);

/** The permissions of other services that the protos list. */
export const otherPermissions: readonly Permission[] = services.flatMap((service) =>
  getOption(service, known_permissions),
);

const ownByName = new Map(ownPermissions.map((permission) => [permission.name, permission]));
const ownNamespaces = new Set(ownPermissions.map(({ name }) => namespaceOf(name)));

/**
 * Whether a permission is in a namespace of Latchkey. Undefined names count
 * too, because a later version may define them.
 */
export function isOwnPermission(name: string): boolean {
  return ownNamespaces.has(namespaceOf(name));
}

/** Whether an application of this type, or a session, may hold the permission. */
export function mayHold(holder: ApplicationType | "session", permission: string): boolean {
  const holders = ownByName.get(permission)?.holders ?? [];
  return holders.length === 0 || holders.includes(callerTypes[holder]);
}

export const callerTypes = {
  private: CallerType.PRIVATE,
  public: CallerType.PUBLIC,
  management: CallerType.MANAGEMENT,
  session: CallerType.SESSION,
} as const satisfies Record<ApplicationType | "session", CallerType>;

/** The access option of a method. Throws if it is missing or names an undeclared permission. */
export function accessOf(method: DescMethod): Access {
  const name = `${method.parent.typeName}.${method.name}`;
  if (!hasOption(method, access)) {
    throw new Error(`${name} has no option (access): add it`);
  }
  const rule = getOption(method, access);
  if (rule.permission !== "" && !ownByName.has(rule.permission)) {
    throw new Error(`${name} requires ${rule.permission}, which no service declares`);
  }
  return rule;
}

/** Whether the methods of a service are unauthenticated. Throws if they differ. */
export function isUnauthenticated({ typeName, methods }: DescService): boolean {
  const unauthenticated = methods.filter((method) => accessOf(method).unauthenticated);
  if (unauthenticated.length > 0 && unauthenticated.length < methods.length) {
    throw new Error(`${typeName} mixes methods with and without a key: split it`);
  }
  return unauthenticated.length > 0;
}

/** The name of a method in the log and the audit log. */
export function methodName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** The REST path template of a method, if it has one. */
export function routeOf(method: DescMethod): string | undefined {
  return getOption(method, http).pattern.value;
}

/** The status of a successful REST response. */
export function statusOf(method: DescMethod): number {
  return getOption(method, http_status) || 200;
}

/** The format of REST requests and responses. */
export function restFormatOf(method: DescMethod): RestFormat {
  return getOption(method, rest_format);
}

/** Whether the method supports an Idempotency-Key. */
export function isReplayable(method: DescMethod): method is DescMethodUnary {
  const isReplayable = getOption(method, replayable);
  if (isReplayable && method.methodKind !== "unary") {
    throw new Error(`${method} is a stream, so it cannot be replayable`);
  }
  return isReplayable;
}

/** The HTTP header that carries a field over REST, if any. */
export function headerOf(field: DescField): string | undefined {
  return getOption(field, http_header) || undefined;
}

/** The HTTP header that carries a response field as plain text, if any. */
export function textHeaderOf(field: DescField): string | undefined {
  return getOption(field, text_header) || undefined;
}

/** Whether REST ignores values of a string field that are not strings. */
export function ignoresOtherTypes(field: DescField): boolean {
  return getOption(field, ignores_other_types);
}

const methods = services.flatMap((service) => service.methods);

/** The headers that carry request fields over REST. */
export const requestHeaders = headersOf(methods.map(({ input }) => input));

/** The headers that carry response fields over REST, except those for gateways. */
export const responseHeaders = headersOf(
  methods.flatMap((method) => (accessOf(method).keyHeader === "" ? method.output : [])),
);

function headersOf(messages: readonly DescMessage[]): readonly string[] {
  const fields = messages.flatMap((message) => message.fields);
  return [...new Set(fields.flatMap((field) => headerOf(field) ?? textHeaderOf(field) ?? []))];
}

function namespaceOf(permission: string): string {
  return permission.slice(0, permission.indexOf(":"));
}
