import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { BadRequest, ErrorInfo } from "../../../gen/google/rpc/error_details_pb.js";
import type {
  BatchCheckAccessRequestSchema,
  BatchCheckAccessResponse,
  CheckAccessRequestSchema,
  CheckAccessResponse,
  ListPermissionsRequestSchema,
  ListPermissionsResponse,
  StreamCheckAccessRequestSchema,
  StreamCheckAccessResponse,
  WatchCredentialsRequestSchema,
  WatchCredentialsResponse,
  WhoAmIResponse,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type {
  Application,
  CreateApplicationRequestSchema,
  ListApplicationKeysResponse,
  ListApplicationsRequestSchema,
  ListApplicationsResponse,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import type {
  ListEventsRequestSchema,
  ListEventsResponse,
  WatchEventsRequestSchema,
  WatchEventsResponse,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import type {
  AuthorizeSessionRequestSchema,
  CreateSessionResponse,
  ListSessionsRequestSchema,
  ListSessionsResponse,
  Session,
} from "../../../gen/latchkey/v1/session_service_pb.js";

/** A key, or `undefined` for a caller that sends none, or a key with more. */
export type Key = string | undefined | KeyWithHeaders;

/** A key, and what else goes with the call. */
export interface KeyWithHeaders {
  readonly key: string;
  /** Headers, which over gRPC are metadata. */
  readonly headers: Readonly<Record<string, string>>;
  /** Told what headers an answer had that is no refusal. */
  onHeaders?(headers: Headers): void;
}

/** What is sent beside a message. */
export function headersFor(key: Key): Record<string, string> {
  if (key === undefined) {
    return {};
  }
  return typeof key === "string"
    ? { "SVC-API-KEY": key }
    : { "SVC-API-KEY": key.key, ...key.headers };
}

/** Tells whoever wants to know what headers an answer had. */
export function reportHeaders(key: Key, headers: Headers): void {
  if (typeof key === "object") {
    key.onHeaders?.(headers);
  }
}

/** What names an application, and the version that it must have. */
interface Guarded {
  readonly id: string;
  readonly ifMatch?: string;
}

/** Every method of the contract that does not stream, whatever the protocol. */
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
    request: Guarded & { readonly gracePeriod?: Duration },
  ): Promise<Application>;
  listApplicationKeys(key: Key, request: { id: string }): Promise<ListApplicationKeysResponse>;
  deleteApplicationKey(
    key: Key,
    request: { id: string; keyId: string; ifMatch?: string },
  ): Promise<void>;
  disableApplication(key: Key, request: Guarded): Promise<Application>;
  enableApplication(key: Key, request: Guarded): Promise<Application>;
  deleteApplication(key: Key, request: Guarded): Promise<void>;
  createSession(key: Key): Promise<CreateSessionResponse>;
  authorizeSession(
    key: Key,
    request: MessageInitShape<typeof AuthorizeSessionRequestSchema>,
  ): Promise<void>;
  listSessions(
    key: Key,
    request?: MessageInitShape<typeof ListSessionsRequestSchema>,
  ): Promise<ListSessionsResponse>;
  getSession(key: Key, request: { id: string }): Promise<Session>;
  deleteSession(key: Key, request: { id: string }): Promise<void>;
  revokeAllSessions(key: Key, request: { id: string }): Promise<void>;
  checkAccess(
    key: Key,
    request: MessageInitShape<typeof CheckAccessRequestSchema>,
  ): Promise<CheckAccessResponse>;
  batchCheckAccess(
    key: Key,
    request: MessageInitShape<typeof BatchCheckAccessRequestSchema>,
  ): Promise<BatchCheckAccessResponse>;
  whoAmI(key: Key): Promise<WhoAmIResponse>;
  listPermissions(
    key: Key,
    request?: MessageInitShape<typeof ListPermissionsRequestSchema>,
  ): Promise<ListPermissionsResponse>;
  listEvents(
    key: Key,
    request?: MessageInitShape<typeof ListEventsRequestSchema>,
  ): Promise<ListEventsResponse>;
  close(): void;
}

/** What a client of a stream sends. */
export type StreamedCheck = MessageInitShape<typeof StreamCheckAccessRequestSchema>;

/** The methods that stream too, for protocols that can. A stream that is refused fails with {@link ApiFailure}. */
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

/** A call that was refused, in the words of any protocol. */
export class ApiFailure extends Error {
  constructor(
    /** The stable word. */
    readonly reason: string,
    /** The status of the protocol: that of HTTP for REST, otherwise that of gRPC. */
    readonly status: number,
    override readonly message: string,
    /** What is wrong, by field. */
    readonly errors: Readonly<Record<string, string[]>>,
    readonly requestId: string,
    /** Whether it says when to try again. */
    readonly hasRetryHint = false,
  ) {
    super(message);
  }
}

/** A failure from the status of gRPC and the details that came with it. */
export function toApiFailure(
  code: number,
  message: string,
  info: ErrorInfo | undefined,
  badRequest: BadRequest | undefined,
  hasRetryHint?: boolean,
): ApiFailure {
  const errors: Record<string, string[]> = {};
  for (const { field, description } of badRequest?.fieldViolations ?? []) {
    errors[field] = [...(errors[field] ?? []), description];
  }
  const reason = info?.reason.toLowerCase() ?? "";
  const requestId = info?.metadata.request_id ?? "";
  return new ApiFailure(reason, code, message, errors, requestId, hasRetryHint);
}

/** The key of an application that was just made, or whose key was just renewed. */
export function keyOf({ key }: Application): string {
  if (key === undefined) {
    throw new Error("the answer has no key");
  }
  return key;
}
