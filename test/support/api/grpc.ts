import { once } from "node:events";
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { OverviewService } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { readDetails } from "../http/raw-grpc.js";
import {
  type ApiFailure,
  headersFor,
  type Key,
  reportHeaders,
  type StreamingApi,
  toApiFailure,
} from "./api.js";
import { toCheck, toStreamedChecks } from "./checks.js";
import { rpcPath } from "./rpc-path.js";

/** Calls the API through @grpc/grpc-js, which shares no code with the server. */
export function createGrpcApi(address: string): StreamingApi {
  const client = new Client(address, credentials.createInsecure());
  const { method: application } = ApplicationService;
  const { method: session } = SessionService;
  const { method: access } = AccessService;
  const { method: event } = EventService;
  const { method: keys } = KeyService;

  function call<M extends DescMethodUnary>(
    method: M,
    key: Key,
    request: MessageInitShape<M["input"]>,
  ): Promise<MessageShape<M["output"]>> {
    const { path, write, read, toMessage } = createCodec(method);
    return new Promise((resolve, reject) => {
      client
        .makeUnaryRequest(
          path,
          write,
          read,
          toMessage(request),
          metadataFor(key),
          (error, message) => (error ? reject(toFailure(error)) : resolve(message as never)),
        )
        .on("metadata", (metadata: Metadata) =>
          reportHeaders(key, new Headers(metadata.toHttp2Headers() as Record<string, string>)),
        );
    });
  }

  function watch<M extends DescMethodServerStreaming>(
    method: M,
    key: Key,
    request: MessageInitShape<M["input"]>,
    signal: AbortSignal,
  ): AsyncIterable<MessageShape<M["output"]>> {
    const { path, write, read, toMessage } = createCodec(method);
    const stream = client.makeServerStreamRequest(
      path,
      write,
      read,
      toMessage(request),
      metadataFor(key),
    );
    signal.addEventListener("abort", () => stream.cancel());
    return mapStreamErrors(stream);
  }

  return {
    createApplication: (key, request) => call(application.createApplication, key, request),
    listApplications: (key, request = {}) => call(application.listApplications, key, request),
    getApplication: (key, request) => call(application.getApplication, key, request),
    getApplicationByKey: (key) => call(application.getApplicationByKey, key, {}),
    updateApplication: (key, request) => call(application.updateApplication, key, request),
    regenerateApplicationKey: (key, request) =>
      call(application.regenerateApplicationKey, key, request),
    listApplicationKeys: (key, request) => call(application.listApplicationKeys, key, request),
    deleteApplicationKey: async (key, request) => {
      await call(application.deleteApplicationKey, key, request);
    },
    disableApplication: (key, request) => call(application.disableApplication, key, request),
    enableApplication: (key, request) => call(application.enableApplication, key, request),
    deleteApplication: async (key, request) => {
      await call(application.deleteApplication, key, request);
    },
    createSession: (key) => call(session.createSession, key, {}),
    authorizeSession: (key, request) => call(session.authorizeSession, key, request),
    listSessions: (key, request = {}) => call(session.listSessions, key, request),
    getSession: (key, request) => call(session.getSession, key, request),
    deleteSession: async (key, request) => {
      await call(session.deleteSession, key, request);
    },
    revokeAllSessions: (key, request) => call(session.revokeAllSessions, key, request),
    checkAccess: (key, request) => call(access.checkAccess, key, toCheck(request)),
    batchCheckAccess: (key, { checks = [] }) =>
      call(access.batchCheckAccess, key, { checks: checks.map(toCheck) }),
    whoAmI: (key) => call(access.whoAmI, key, {}),
    listPermissions: (key, request = {}) => call(access.listPermissions, key, request),
    getEvent: (key, request) => call(event.getEvent, key, request),
    listEvents: (key, request = {}) => call(event.listEvents, key, request),
    getOverview: (key) => call(OverviewService.method.getOverview, key, {}),
    revokeKey: async (key, request) => {
      await call(keys.revokeKey, key, request);
    },

    watchCredentials: (key, request, signal) =>
      watch(access.watchCredentials, key, request, signal),
    watchEvents: (key, request, signal) => watch(event.watchEvents, key, request, signal),

    streamCheckAccess(key, checks, signal) {
      const { path, write, read, toMessage } = createCodec(access.streamCheckAccess);
      const stream = client.makeBidiStreamRequest(path, write, read, metadataFor(key));
      signal.addEventListener("abort", () => stream.cancel());
      void (async () => {
        for await (const check of toStreamedChecks(checks)) {
          if (!stream.write(toMessage(check))) {
            await once(stream, "drain");
          }
        }
        stream.end();
      })();
      return mapStreamErrors(stream);
    },

    close: () => client.close(),
  };
}

function metadataFor(key: Key): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headersFor(key))) {
    metadata.set(name, value);
  }
  return metadata;
}

function createCodec<M extends DescMethod>(method: M) {
  const { input, output } = method;
  type Input = MessageShape<M["input"]>;
  type Output = MessageShape<M["output"]>;
  return {
    path: rpcPath(method),
    write: (message: Input) => Buffer.from(toBinary(input, message)),
    read: (bytes: Uint8Array) => fromBinary(output, bytes) as Output,
    toMessage: (request: MessageInitShape<M["input"]>) => create(input, request as never) as Input,
  };
}

async function* mapStreamErrors<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toFailure(error as ServiceError);
  }
}

function toFailure(error: ServiceError): ApiFailure {
  const [status = ""] = error.metadata.get("grpc-status-details-bin");
  const { find, info, badRequest } = readDetails(Buffer.from(status));
  const hasRetryHint = find(RetryInfoSchema) !== undefined;
  return toApiFailure(error.code, error.details, info, badRequest, hasRetryHint);
}
