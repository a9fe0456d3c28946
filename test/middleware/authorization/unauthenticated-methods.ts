import { connect } from "node:http2";
import { type DescMethod, type DescService, fromBinary } from "@bufbuild/protobuf";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import {
  ServerReflection,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { systemEndpointNames } from "../../../src/transport/system/endpoints.js";
import { parseGrpcMessages } from "../../support/http/http2-wire.js";
import type { TestServer } from "../../support/service/server.js";
import { callGrpc } from "./call.js";
import { sampleOf, type Target } from "./samples.js";

export const unauthenticatedServices: readonly DescService[] = [
  Health,
  ServerReflection,
  ServerReflectionAlpha,
  KeyService,
];

/** Needs a signature instead of a key. */
export const signedMethod: DescMethod = KeyService.method.reportLeakedKeys;

const unauthenticatedPages: readonly string[] = ["", ...systemEndpointNames].map(
  (name) => `/${name}`,
);

const noTarget: Target = {
  applicationId: "",
  key: "",
  keyId: "",
  sessionId: "",
  eventId: "",
  nonce: "",
};

/** Calls every method and page that needs no key with each key, and returns whether all calls succeeded. */
export async function checkUnauthenticatedAccess(
  { url }: TestServer,
  keys: readonly (string | undefined)[],
): Promise<Record<string, boolean>> {
  const session = connect(url);
  const methods = unauthenticatedServices
    .flatMap((service) => service.methods)
    .filter((method) => method !== signedMethod);
  const canCall = async (method: DescMethod, key: string | undefined) => {
    const { refusal } = await callGrpc(session, method, sampleOf(method, noTarget), key);
    return refusal === undefined;
  };
  const canRead = async (path: string, key: string | undefined) => {
    const headers = key === undefined ? {} : { "svc-api-key": key };
    return (await fetch(url + path, { headers })).status === 200;
  };
  const allowsEveryKey = async (
    name: string,
    call: (key: string | undefined) => Promise<boolean>,
  ) => [name, (await Promise.all(keys.map(call))).every(Boolean)] as const;
  try {
    return Object.fromEntries(
      await Promise.all([
        ...unauthenticatedPages.map((path) => allowsEveryKey(path, (key) => canRead(path, key))),
        ...methods.map((method) =>
          allowsEveryKey(`${method.parent.typeName}/${method.name}`, (key) => canCall(method, key)),
        ),
      ]),
    );
  } finally {
    session.destroy();
  }
}

export async function listReflectedServices({ url }: TestServer): Promise<string[]> {
  const session = connect(url);
  try {
    const method = ServerReflection.method.serverReflectionInfo;
    const { text } = await callGrpc(session, method, sampleOf(method, noTarget), undefined);
    const [message = Buffer.alloc(0)] = parseGrpcMessages(Buffer.from(text, "latin1"));
    const { messageResponse } = fromBinary(ServerReflectionResponseSchema, message);
    return messageResponse.case === "listServicesResponse"
      ? messageResponse.value.service.map(({ name }) => name)
      : [];
  } finally {
    session.destroy();
  }
}
