import { spawn } from "node:child_process";
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  ServerReflection,
  type ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { startServer, type TestServer } from "../../support/service/server.js";

type ReflectionRequest = NonNullable<
  MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]
>;
type ReflectionResult = ServerReflectionResponse["messageResponse"];

let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

afterAll(() => server.close());

const versions = {
  "grpc.reflection.v1": ServerReflection,
  "grpc.reflection.v1alpha": ServerReflectionAlpha as unknown as typeof ServerReflection,
};

describe.each(Object.entries(versions))("%s", (_name, service) => {
  /** Sends requests on one stream and returns the responses in order. */
  async function call(...messages: ReflectionRequest[]): Promise<ReflectionResult[]> {
    const client = createClient(service, createGrpcTransport({ baseUrl: server.url }));
    const requests = (async function* () {
      for (const messageRequest of messages) {
        yield { host: "h", messageRequest };
      }
    })();
    const responses: ReflectionResult[] = [];
    for await (const { validHost, messageResponse } of client.serverReflectionInfo(requests)) {
      expect(validHost).toBe("h");
      responses.push(messageResponse);
    }
    return responses;
  }

  async function filesFor(message: ReflectionRequest): Promise<FileDescriptorProto[]> {
    const [response] = await call(message);
    const files =
      response?.case === "fileDescriptorResponse" ? response.value.fileDescriptorProto : [];
    return files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  }

  it("lists every service, without a key", async () => {
    const [response] = await call({ case: "listServices", value: "" });
    const listed = response?.case === "listServicesResponse" ? response.value.service : [];
    expect(listed.map(({ name }) => name).sort()).toEqual([
      "envoy.service.auth.v3.Authorization",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "latchkey.v1.AccessService",
      "latchkey.v1.ApplicationService",
      "latchkey.v1.AuthZenService",
      "latchkey.v1.EventService",
      "latchkey.v1.GatewayService",
      "latchkey.v1.IntrospectionService",
      "latchkey.v1.KeyService",
      "latchkey.v1.OverviewService",
      "latchkey.v1.SessionService",
    ]);
  });

  it.each([
    ["latchkey.v1.ApplicationService", "latchkey/v1/application_service.proto"],
    ["latchkey.v1.ApplicationService.CreateApplication", "latchkey/v1/application_service.proto"],
    ["latchkey.v1.Application", "latchkey/v1/application_service.proto"],
    ["latchkey.v1.Application.name", "latchkey/v1/application_service.proto"],
    ["latchkey.v1.CallerType", "latchkey/v1/options.proto"],
    ["latchkey.v1.access", "latchkey/v1/options.proto"],
    ["grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"],
    ["google.rpc.Status", "google/rpc/status.proto"],
    ["google.rpc.BadRequest", "google/rpc/error_details.proto"],
    ["google.rpc.ErrorInfo", "google/rpc/error_details.proto"],
    ["google.rpc.RetryInfo", "google/rpc/error_details.proto"],
  ])("returns the file of %s with its imports", async (symbol, name) => {
    const files = await filesFor({ case: "fileContainingSymbol", value: symbol });
    expect(files[0]?.name).toBe(name);
    const names = files.map((file) => file.name);
    expect(names).toEqual(expect.arrayContaining(files.flatMap((file) => file.dependency)));
    expect(new Set(names).size).toBe(names.length);
  });

  it("returns a file by name", async () => {
    const value = "latchkey/v1/session_service.proto";
    const [file] = await filesFor({ case: "fileByFilename", value });
    expect(file?.name).toBe(value);
    expect(file?.service.map(({ name }) => name)).toEqual(["SessionService"]);
  });

  it("returns the file of an extension by its number", async () => {
    const [file] = await filesFor({
      case: "fileContainingExtension",
      value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 50001 },
    });
    expect(file?.name).toBe("latchkey/v1/options.proto");
  });

  it("lists the numbers of the extensions of a type", async () => {
    const value = "google.protobuf.MethodOptions";
    const [response] = await call({ case: "allExtensionNumbersOfType", value });
    expect(response).toMatchObject({
      case: "allExtensionNumbersResponse",
      value: {
        baseTypeName: value,
        extensionNumber: expect.arrayContaining([50001, 50002, 72295728]),
      },
    });
  });

  it.each<[what: string, message: ReflectionRequest]>([
    ["an unknown symbol", { case: "fileContainingSymbol", value: "latchkey.v1.Nothing" }],
    ["an empty symbol", { case: "fileContainingSymbol", value: "" }],
    ["a name of an inherited property", { case: "fileContainingSymbol", value: "constructor" }],
    ["an unknown file", { case: "fileByFilename", value: "../../etc/passwd" }],
    ["an unknown type", { case: "allExtensionNumbersOfType", value: "latchkey.v1.Nothing" }],
    [
      "an unknown extension",
      {
        case: "fileContainingExtension",
        value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 1 },
      },
    ],
  ])("returns an error for %s and keeps the stream open", async (_what, message) => {
    const [failed, listed] = await call(message, { case: "listServices", value: "" });
    expect(failed?.case).toBe("errorResponse");
    expect(failed?.value).toMatchObject({ errorCode: Code.NotFound });
    expect(listed?.case).toBe("listServicesResponse");
  });
});

describe("buf curl with reflection", () => {
  function curl(protocol: string, method: string, data: string, ...flags: string[]) {
    const url = `${server.url}/latchkey.v1.${method}`;
    const args = ["curl", "--protocol", protocol, "--http2-prior-knowledge", ...flags];
    const child = spawn("node_modules/.bin/buf", [...args, "--data", data, url], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
      const output = { out: "", err: "" };
      child.stdout.on("data", (text) => {
        output.out += text;
      });
      child.stderr.on("data", (text) => {
        output.err += text;
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, ...output }));
    });
  }

  it.each(["grpc", "grpcweb", "connect"])("makes a call with %s", async (protocol) => {
    const key = ["--header", `SVC-API-KEY: ${root.key}`];
    const data = JSON.stringify({
      name: protocol,
      type: "private",
      rules: [{ priority: 1, container: "/a/", transform: "mask", permissions: ["token:read"] }],
    });
    const { code, out, err } = await curl(
      protocol,
      "ApplicationService/CreateApplication",
      data,
      ...key,
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ name: protocol, tenantId: root.tenantId });
  });

  it.each(["grpc", "grpcweb", "connect"])("is refused with %s without a key", async (protocol) => {
    const { code, err } = await curl(protocol, "SessionService/CreateSession", "{}");
    expect(code).not.toBe(0);
    expect(err).toContain("unauthenticated");
    expect(err).toContain("SVC-API-KEY");
  });
});
