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
import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { OverviewService } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import {
  type ApiFailure,
  headersFor,
  type Key,
  reportHeaders,
  type StreamingApi,
  toApiFailure,
} from "./api.js";
import { toCheck, toStreamedChecks } from "./checks.js";

/** Calls the API through a Connect transport, with any of its protocols. */
export function createConnectApi(transport: Transport, close = () => {}): StreamingApi {
  const applications: Client<typeof ApplicationService> = createClient(
    ApplicationService,
    transport,
  );
  const sessions: Client<typeof SessionService> = createClient(SessionService, transport);
  const access: Client<typeof AccessService> = createClient(AccessService, transport);
  const overview: Client<typeof OverviewService> = createClient(OverviewService, transport);
  const events: Client<typeof EventService> = createClient(EventService, transport);
  const keys: Client<typeof KeyService> = createClient(KeyService, transport);
  return {
    createApplication: (key, request) =>
      mapError(applications.createApplication(request, optionsFor(key))),
    listApplications: (key, request = {}) =>
      mapError(applications.listApplications(request, optionsFor(key))),
    getApplication: (key, request) =>
      mapError(applications.getApplication(request, optionsFor(key))),
    getApplicationByKey: (key) => mapError(applications.getApplicationByKey({}, optionsFor(key))),
    updateApplication: (key, request) =>
      mapError(applications.updateApplication(request, optionsFor(key))),
    regenerateApplicationKey: (key, request) =>
      mapError(applications.regenerateApplicationKey(request, optionsFor(key))),
    listApplicationKeys: (key, request) =>
      mapError(applications.listApplicationKeys(request, optionsFor(key))),
    deleteApplicationKey: async (key, request) => {
      await mapError(applications.deleteApplicationKey(request, optionsFor(key)));
    },
    disableApplication: (key, request) =>
      mapError(applications.disableApplication(request, optionsFor(key))),
    enableApplication: (key, request) =>
      mapError(applications.enableApplication(request, optionsFor(key))),
    deleteApplication: async (key, request) => {
      await mapError(applications.deleteApplication(request, optionsFor(key)));
    },
    createSession: (key) => mapError(sessions.createSession({}, optionsFor(key))),
    authorizeSession: (key, request) =>
      mapError(sessions.authorizeSession(request, optionsFor(key))),
    listSessions: (key, request = {}) => mapError(sessions.listSessions(request, optionsFor(key))),
    getSession: (key, request) => mapError(sessions.getSession(request, optionsFor(key))),
    deleteSession: async (key, request) => {
      await mapError(sessions.deleteSession(request, optionsFor(key)));
    },
    revokeAllSessions: (key, request) =>
      mapError(sessions.revokeAllSessions(request, optionsFor(key))),
    checkAccess: (key, request) => mapError(access.checkAccess(toCheck(request), optionsFor(key))),
    batchCheckAccess: (key, { checks = [] }) =>
      mapError(access.batchCheckAccess({ checks: checks.map(toCheck) }, optionsFor(key))),
    whoAmI: (key) => mapError(access.whoAmI({}, optionsFor(key))),
    listPermissions: (key, request = {}) =>
      mapError(access.listPermissions(request, optionsFor(key))),
    getEvent: (key, request) => mapError(events.getEvent(request, optionsFor(key))),
    listEvents: (key, request = {}) => mapError(events.listEvents(request, optionsFor(key))),
    getOverview: (key) => mapError(overview.getOverview({}, optionsFor(key))),
    revokeKey: async (key, request) => {
      await mapError(keys.revokeKey(request, optionsFor(key)));
    },
    watchEvents: (key, request, signal) =>
      mapStreamErrors(events.watchEvents(request, { ...optionsFor(key), signal })),
    watchCredentials: (key, request, signal) =>
      mapStreamErrors(access.watchCredentials(request, { ...optionsFor(key), signal })),
    streamCheckAccess: (key, checks, signal) =>
      mapStreamErrors(
        access.streamCheckAccess(toStreamedChecks(checks), { ...optionsFor(key), signal }),
      ),
    close,
  };
}

function optionsFor(key: Key): CallOptions {
  return { headers: headersFor(key), onHeader: (headers) => reportHeaders(key, headers) };
}

async function mapError<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw toFailure(ConnectError.from(error));
  }
}

async function* mapStreamErrors<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
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
