import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { BadRequest, ErrorInfo } from "../../../gen/google/rpc/error_details_pb.js";
import type {
  BatchCheckAccessResponse,
  CheckAccessResponse,
  ListPermissionsRequestSchema,
  ListPermissionsResponse,
  StreamCheckAccessResponse,
  WatchCredentialsRequestSchema,
  WatchCredentialsResponse,
  WhoAmIResponse,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type {
  Application,
  CreateApplicationRequestSchema,
  ListApplicationKeysRequestSchema,
  ListApplicationKeysResponse,
  ListApplicationsRequestSchema,
  ListApplicationsResponse,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import type {
  Event,
  ListEventsRequestSchema,
  ListEventsResponse,
  WatchEventsRequestSchema,
  WatchEventsResponse,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import type { Overview } from "../../../gen/latchkey/v1/overview_service_pb.js";
import type {
  AuthorizeSessionRequestSchema,
  AuthorizeSessionResponse,
  CreateSessionResponse,
  ListSessionsRequestSchema,
  ListSessionsResponse,
  RevokeAllSessionsResponse,
  Session,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { type FieldViolation, groupByField } from "../../../src/contract/problems.js";
import type { CheckInit, StreamedCheck } from "./checks.js";

/** A key, `undefined` for a caller without a key, or a key with headers. */
export type Key = string | undefined | KeyWithHeaders;

export interface KeyWithHeaders {
  readonly key: string;
  /** Sent as metadata over gRPC. */
  readonly headers: Readonly<Record<string, string>>;
  /** Called with the headers of a successful response. */
  onHeaders?(headers: Headers): void;
}

/** The request headers for a key. */
export function headersFor(key: Key): Record<string, string> {
  if (key === undefined) {
    return {};
  }
  return typeof key === "string"
    ? { "SVC-API-KEY": key }
    : { "SVC-API-KEY": key.key, ...key.headers };
}

/** Calls `onHeaders` of a key, if any. */
export function reportHeaders(key: Key, headers: Headers): void {
  if (typeof key === "object") {
    key.onHeaders?.(headers);
  }
}

/** The id of an application, and the version that it must have. */
interface ConditionalRequest {
  readonly id: string;
  readonly ifMatch?: string;
}

/** All unary methods of the contract, independent of the protocol. */
export interface Api {
  createApplication(
    key: Key,
    request: MessageInitShape<typeof CreateApplicationRequestSchema>,
  ): Promise<Application>;
  listApplications(
    key: Key,
    request?: MessageInitShape<typeof ListApplicationsRequestSchema>,
  ): Promise<ListApplicationsResponse>;
  getApplication(key: Key, request: { id: string }): Promise<Application>;
  getApplicationByKey(key: Key): Promise<Application>;
  updateApplication(
    key: Key,
    request: MessageInitShape<typeof UpdateApplicationRequestSchema>,
  ): Promise<Application>;
  regenerateApplicationKey(
    key: Key,
    request: ConditionalRequest & { readonly gracePeriod?: Duration },
  ): Promise<Application>;
  listApplicationKeys(
    key: Key,
    request: MessageInitShape<typeof ListApplicationKeysRequestSchema>,
  ): Promise<ListApplicationKeysResponse>;
  deleteApplicationKey(
    key: Key,
    request: { id: string; keyId: string; ifMatch?: string },
  ): Promise<void>;
  disableApplication(key: Key, request: ConditionalRequest): Promise<Application>;
  enableApplication(key: Key, request: ConditionalRequest): Promise<Application>;
  deleteApplication(key: Key, request: ConditionalRequest): Promise<void>;
  createSession(key: Key): Promise<CreateSessionResponse>;
  authorizeSession(
    key: Key,
    request: MessageInitShape<typeof AuthorizeSessionRequestSchema>,
  ): Promise<AuthorizeSessionResponse>;
  listSessions(
    key: Key,
    request?: MessageInitShape<typeof ListSessionsRequestSchema>,
  ): Promise<ListSessionsResponse>;
  getSession(key: Key, request: { id: string }): Promise<Session>;
  deleteSession(key: Key, request: { id: string }): Promise<void>;
  revokeAllSessions(
    key: Key,
    request: { id: string; openedOnly?: boolean },
  ): Promise<RevokeAllSessionsResponse>;
  checkAccess(key: Key, request: CheckInit): Promise<CheckAccessResponse>;
  batchCheckAccess(
    key: Key,
    request: { readonly checks?: readonly CheckInit[] },
  ): Promise<BatchCheckAccessResponse>;
  whoAmI(key: Key): Promise<WhoAmIResponse>;
  listPermissions(
    key: Key,
    request?: MessageInitShape<typeof ListPermissionsRequestSchema>,
  ): Promise<ListPermissionsResponse>;
  getEvent(key: Key, request: { id: string }): Promise<Event>;
  listEvents(
    key: Key,
    request?: MessageInitShape<typeof ListEventsRequestSchema>,
  ): Promise<ListEventsResponse>;
  getOverview(key: Key): Promise<Overview>;
  revokeKey(key: Key, request: { key: string }): Promise<void>;
  close(): void;
}

/** Adds the streaming methods. A refused stream throws {@link ApiFailure}. */
export interface StreamingApi extends Api {
  watchCredentials(
    key: Key,
    request: MessageInitShape<typeof WatchCredentialsRequestSchema>,
    signal: AbortSignal,
  ): AsyncIterable<WatchCredentialsResponse>;

  watchEvents(
    key: Key,
    request: MessageInitShape<typeof WatchEventsRequestSchema>,
    signal: AbortSignal,
  ): AsyncIterable<WatchEventsResponse>;

  /** Over HTTP/2 only. */
  streamCheckAccess(
    key: Key,
    checks: AsyncIterable<StreamedCheck>,
    signal: AbortSignal,
  ): AsyncIterable<StreamCheckAccessResponse>;
}

/** What programs read of an error. */
interface FailureFacts {
  readonly violations: readonly Required<FieldViolation>[];
  readonly missingPermissions: readonly string[];
  readonly currentVersion?: string | undefined;
}

/** The error of a refused call, independent of the protocol. */
export class ApiFailure extends Error {
  constructor(
    /** The stable error code. */
    readonly reason: string,
    /** The HTTP status for REST, otherwise the gRPC status. */
    readonly status: number,
    override readonly message: string,
    /** Violations by field. */
    readonly errors: Readonly<Record<string, string[]>>,
    readonly requestId: string,
    /** Whether the response has a retry delay. */
    readonly hasRetryHint = false,
    readonly facts: FailureFacts = { violations: [], missingPermissions: [] },
  ) {
    super(message);
  }
}

/** Converts a gRPC status and its details. */
export function toApiFailure(
  code: number,
  message: string,
  info: ErrorInfo | undefined,
  badRequest: BadRequest | undefined,
  hasRetryHint?: boolean,
): ApiFailure {
  const violations = (badRequest?.fieldViolations ?? []).map(({ field, description, reason }) => ({
    field,
    message: description,
    code: reason,
  }));
  const { missing_permissions, current_version } = info?.metadata ?? {};
  const facts = {
    violations,
    missingPermissions: missing_permissions?.split(",") ?? [],
    currentVersion: current_version,
  };
  const errors = groupByField(violations);
  const reason = info?.reason.toLowerCase() ?? "";
  const requestId = info?.metadata.request_id ?? "";
  return new ApiFailure(reason, code, message, errors, requestId, hasRetryHint, facts);
}

/** The key of an application that was just created or got a new key. */
export function keyOf({ key }: Application): string {
  if (key === undefined) {
    throw new Error("the response has no key");
  }
  return key;
}
