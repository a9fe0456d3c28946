import {
  type CallOptions,
  type Client,
  ConnectError,
  createClient,
  type Transport,
} from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../../gen/google/rpc/error_details_pb.js";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import {
  type ApiFailure,
  headersFor,
  type Key,
  reportHeaders,
  type StreamingApi,
  toApiFailure,
} from "./api.js";

/** The contract through a Connect transport, whichever protocol it speaks. */
export function createConnectApi(transport: Transport, close = () => {}): StreamingApi {
  const applications: Client<typeof ApplicationService> = createClient(
    ApplicationService,
    transport,
  );
  const sessions: Client<typeof SessionService> = createClient(SessionService, transport);
  const access: Client<typeof AccessService> = createClient(AccessService, transport);
  const events: Client<typeof EventService> = createClient(EventService, transport);
  return {
    createApplication: (key, request) => told(applications.createApplication(request, as(key))),
    listApplications: (key, request = {}) => told(applications.listApplications(request, as(key))),
    getApplication: (key, request) => told(applications.getApplication(request, as(key))),
    getApplicationByKey: (key) => told(applications.getApplicationByKey({}, as(key))),
    updateApplication: (key, request) => told(applications.updateApplication(request, as(key))),
    regenerateApplicationKey: (key, request) =>
      told(applications.regenerateApplicationKey(request, as(key))),
    listApplicationKeys: (key, request) => told(applications.listApplicationKeys(request, as(key))),
    deleteApplicationKey: async (key, request) => {
      await told(applications.deleteApplicationKey(request, as(key)));
    },
    disableApplication: (key, request) => told(applications.disableApplication(request, as(key))),
    enableApplication: (key, request) => told(applications.enableApplication(request, as(key))),
    deleteApplication: async (key, request) => {
      await told(applications.deleteApplication(request, as(key)));
    },
    createSession: (key) => told(sessions.createSession({}, as(key))),
    authorizeSession: async (key, request) => {
      await told(sessions.authorizeSession(request, as(key)));
    },
    listSessions: (key, request = {}) => told(sessions.listSessions(request, as(key))),
    getSession: (key, request) => told(sessions.getSession(request, as(key))),
    deleteSession: async (key, request) => {
      await told(sessions.deleteSession(request, as(key)));
    },
    revokeAllSessions: async (key, request) => {
      await told(sessions.revokeAllSessions(request, as(key)));
    },
    checkAccess: (key, request) => told(access.checkAccess(request, as(key))),
    batchCheckAccess: (key, request) => told(access.batchCheckAccess(request, as(key))),
    whoAmI: (key) => told(access.whoAmI({}, as(key))),
    listPermissions: (key, request = {}) => told(access.listPermissions(request, as(key))),
    listEvents: (key, request = {}) => told(events.listEvents(request, as(key))),
    watchEvents: (key, request, signal) =>
      toldEach(events.watchEvents(request, { ...as(key), signal })),
    watchCredentials: (key, request, signal) =>
      toldEach(access.watchCredentials(request, { ...as(key), signal })),
    streamCheckAccess: (key, checks, signal) =>
      toldEach(access.streamCheckAccess(checks, { ...as(key), signal })),
    close,
  };
}

function as(key: Key): CallOptions {
  return { headers: headersFor(key), onHeader: (headers) => reportHeaders(key, headers) };
}

async function told<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw toFailure(ConnectError.from(error));
  }
}

async function* toldEach<T>(answers: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* answers;
  } catch (error) {
    throw toFailure(ConnectError.from(error));
  }
}

function toFailure(error: ConnectError): ApiFailure {
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const hasRetryHint = error.findDetails(RetryInfoSchema).length > 0;
  return toApiFailure(error.code, error.rawMessage, info, badRequest, hasRetryHint);
}
