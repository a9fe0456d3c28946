import {
  create,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { type Api, type ApiFailure, failureOf, type Key } from "./api.js";
import { readDetails } from "./raw-grpc.js";

/** The contract through @grpc/grpc-js, which shares no code with the server. */
export function createGrpcApi(address: string): Api {
  const client = new Client(address, credentials.createInsecure());
  const { method: application } = ApplicationService;
  const { method: session } = SessionService;

  function call<M extends DescMethodUnary>(
    method: M,
    key: Key,
    request: MessageInitShape<M["input"]>,
  ): Promise<MessageShape<M["output"]>> {
    const metadata = new Metadata();
    if (key !== undefined) {
      metadata.set("svc-api-key", key);
    }
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<M["input"]>) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes) as MessageShape<M["output"]>,
        create(method.input, request as never) as MessageShape<M["input"]>,
        metadata,
        (error, message) => (error ? reject(toFailure(error)) : resolve(message as never)),
      );
    });
  }

  return {
    createApplication: (key, request) => call(application.createApplication, key, request),
    listApplications: (key, request = {}) => call(application.listApplications, key, request),
    getApplication: (key, request) => call(application.getApplication, key, request),
    getApplicationByKey: (key) => call(application.getApplicationByKey, key, {}),
    updateApplication: (key, request) => call(application.updateApplication, key, request),
    regenerateApplicationKey: (key, request) =>
      call(application.regenerateApplicationKey, key, request),
    deleteApplication: async (key, request) => {
      await call(application.deleteApplication, key, request);
    },
    createSession: (key) => call(session.createSession, key, {}),
    authorizeSession: async (key, request) => {
      await call(session.authorizeSession, key, request);
    },
    close: () => client.close(),
  };
}

function toFailure(error: ServiceError): ApiFailure {
  const [status = ""] = error.metadata.get("grpc-status-details-bin");
  const { info, badRequest } = readDetails(Buffer.from(status));
  return failureOf(error.code, error.details, info, badRequest);
}
