import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import {
  exchangeRaw,
  expectProblem,
  type HttpResponse,
  parseResponses,
  send,
} from "../../support/http/http.js";

const target = useBadInputTarget();

const megabyte = 1024 * 1024;
const bodySize = 100 * megabyte;
const block = Buffer.alloc(megabyte, " ");
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);

interface Upload {
  readonly response: HttpResponse;
  /** Bytes of the body that were written before the server stopped reading. */
  readonly sent: number;
}

/** Sends 100 MB as fast as possible and expects other requests to be served meanwhile. */
async function upload(path: string, type: string, options: UploadOptions = {}): Promise<Upload> {
  const [result, ...others] = await Promise.all([
    (options.http2 ? uploadHttp2 : uploadHttp1)(path, type, options),
    ...Array.from({ length: 5 }, () =>
      send(target, "/applications/key", { headers: { "svc-api-key": target.root.key } }),
    ),
  ]);
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(result.sent).toBeLessThan(bodySize / 2);
  return result;
}

interface UploadOptions {
  readonly key?: string;
  readonly chunked?: boolean;
  readonly http2?: boolean;
}

function uploadHttp1(path: string, type: string, options: UploadOptions): Promise<Upload> {
  const { key = target.root.key, chunked = false } = options;
  const length = chunked ? "transfer-encoding: chunked" : `content-length: ${bodySize}`;
  return new Promise((resolve) => {
    const socket = connect(target.port, "127.0.0.1");
    let text = "";
    let sent = 0;
    const push = (error?: Error | null) => {
      if (sent < bodySize && !error) {
        sent += block.length;
        socket.write(chunked ? `${block.length.toString(16)}\r\n${block}\r\n` : block, push);
      }
    };
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve({ response: parseResponses(text)[0] as HttpResponse, sent }));
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\ncontent-type: ${type}\r\n${length}\r\n\r\n`,
    );
    push();
  });
}

function uploadHttp2(path: string, type: string, options: UploadOptions): Promise<Upload> {
  const { key = target.root.key, chunked = false } = options;
  return new Promise((resolve, reject) => {
    const session = connectHttp2(target.server.url);
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "svc-api-key": key,
      "content-type": type,
      ...(!chunked && { "content-length": bodySize }),
    });
    let response: HttpResponse = { status: 0, headers: {}, body: "" };
    let sent = 0;
    const push = (error?: Error | null) => {
      if (sent < bodySize && !error) {
        sent += block.length;
        stream.write(block, push);
      }
    };
    stream.on("response", ({ ":status": status = 0, ...headers }) => {
      response = { status, headers: headers as Record<string, string>, body: "" };
    });
    stream.on("data", (chunk) => {
      response = { ...response, body: response.body + chunk };
    });
    stream.on("trailers", (trailers) => {
      response = { ...response, headers: { ...response.headers, ...(trailers as object) } };
    });
    stream.on("error", reject);
    stream.on("close", () => session.close(() => resolve({ response, sent })));
    push();
  });
}

const uploads: [name: string, options: UploadOptions][] = [
  ["with a length, over HTTP/1.1", {}],
  ["with chunked encoding, over HTTP/1.1", { chunked: true }],
  ["with a length, over HTTP/2", { http2: true }],
  ["without a length, over HTTP/2", { http2: true, chunked: true }],
];

describe.each(uploads)("a body of 100 MB %s", (_name, options) => {
  it("is refused with 413 long before it is complete", async () => {
    const { response } = await upload("/applications", "application/json", options);
    expectProblem(response, 413, "body_too_large");
  });

  it("is not read without a key, or for an unknown path or type", async () => {
    const noKey = await upload("/applications", "application/json", { ...options, key: "x" });
    expectProblem(noKey.response, 401, "unauthenticated");
    const noPath = await upload("/nothing", "application/json", options);
    expectProblem(noPath.response, 404, "path_not_found");
    const noMethod = await upload("/healthz", "application/json", options);
    expectProblem(noMethod.response, 405, "method_not_allowed");
    const noType = await upload(createApplicationPath, "text/plain", options);
    expectProblem(noType.response, 415, "unsupported_media_type");
  });

  it("is refused by Connect as resource_exhausted", async () => {
    const { response } = await upload(createApplicationPath, "application/json", options);
    expect({ status: response.status, ...JSON.parse(response.body) }).toMatchObject({
      status: 429,
      code: "resource_exhausted",
      message: "The body may be at most 1048576 bytes. Send a smaller body.",
      details: [{ type: "google.rpc.ErrorInfo" }],
    });
  });

  it("is refused by gRPC-Web and gRPC as RESOURCE_EXHAUSTED", async () => {
    const web = await upload(createApplicationPath, "application/grpc-web+proto", options);
    expect(web.response.body).toContain("grpc-status: 8\r\n");
    if (options.http2) {
      const { response } = await upload(createApplicationPath, "application/grpc", options);
      expect(response).toMatchObject({ status: 200, headers: { "grpc-status": "8" } });
    }
  });
});

describe("a client that expects 100 Continue", () => {
  const requestWithExpect = (path: string, key: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\ncontent-type: application/json\r\n` +
    `expect: 100-continue\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`;

  it.each(["/applications", createApplicationPath])(
    "is refused without 100 Continue if the body is too large: %s",
    async (path) => {
      const response = await exchangeRaw(
        target,
        requestWithExpect(path, target.root.key, bodySize),
      );
      expect([413, 429]).toContain(response.status);
    },
  );

  it("is refused without 100 Continue if it has no key", async () => {
    const response = await exchangeRaw(target, requestWithExpect("/applications", "x", 2));
    expectProblem(response, 401, "unauthenticated");
  });

  it.each(["/applications", createApplicationPath])(
    "gets 100 Continue if the request is acceptable: %s",
    async (path) => {
      const text = await new Promise<string>((resolve) => {
        const socket = connect(target.port, "127.0.0.1");
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk;
          if (text === "HTTP/1.1 100 Continue\r\n\r\n") {
            socket.write("{}");
          }
        });
        socket.on("close", () => resolve(text));
        socket.write(requestWithExpect(path, target.root.key, 2));
      });
      expect(parseResponses(text).map(({ status }) => status)).toEqual([100, 400]);
    },
  );

  it("causes no server error if it disconnects while it waits", async () => {
    for (const path of ["/applications", createApplicationPath]) {
      await new Promise((resolve) => {
        const socket = connect(target.port, "127.0.0.1");
        socket.on("data", () => socket.destroy());
        socket.on("close", resolve);
        socket.write(requestWithExpect(path, target.root.key, 2));
      });
    }
  });

  it("gets 100 Continue over HTTP/2 only if the request is acceptable", async () => {
    const session = connectHttp2(target.server.url);
    const call = (path: string, length: number) =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ":method": "POST",
          ":path": path,
          expect: "100-continue",
          "svc-api-key": target.root.key,
          "content-type": "application/json",
          "content-length": length,
        });
        let hasContinue = false;
        stream.on("continue", () => {
          hasContinue = true;
          stream.end("{}");
        });
        stream.on("response", ({ ":status": status }) => resolve({ hasContinue, status }));
        stream.on("error", reject);
      });
    expect(await call("/applications", 2)).toEqual({ hasContinue: true, status: 400 });
    expect(await call("/applications", bodySize)).toEqual({ hasContinue: false, status: 413 });
    expect(await call(createApplicationPath, 2)).toEqual({ hasContinue: true, status: 400 });
    expect(await call(createApplicationPath, bodySize)).toEqual({
      hasContinue: false,
      status: 429,
    });
    session.destroy();
  });

  it("causes no server error if it ends its stream immediately", async () => {
    const session = connectHttp2(target.server.url);
    await new Promise((resolve) => {
      const stream = session.request(
        {
          ":method": "POST",
          ":path": "/applications",
          expect: "100-continue",
          "content-length": 5,
        },
        { endStream: true },
      );
      stream.on("error", () => {});
      stream.on("close", resolve);
    });
    session.destroy();
  });
});

describe("a truncated body", () => {
  it.each(["/applications", createApplicationPath])("causes no server error: %s", async (path) => {
    for (const type of ["application/json", "application/grpc", "application/grpc-web+proto"]) {
      await new Promise((resolve) => {
        const socket = connect(target.port, "127.0.0.1");
        socket.on("close", resolve);
        socket.write(
          `POST ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${target.root.key}\r\n` +
            `content-type: ${type}\r\ncontent-length: 100\r\n\r\n{"name":`,
          () => setTimeout(() => socket.resetAndDestroy(), 20),
        );
      });
    }
  });

  it("is reported to a client that still reads", async () => {
    const text = await new Promise<string>((resolve) => {
      const socket = connect({ port: target.port, host: "127.0.0.1", allowHalfOpen: true });
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.on("end", () => resolve(text));
      socket.end(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${target.root.key}\r\n` +
          'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"name":',
      );
    });
    expectProblem(parseResponses(text)[0] as HttpResponse, 400, "invalid_request");
  });
});
