import { describe, expect, it } from "@jest/globals";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { expectProblem, send, sendRaw } from "../../support/http/http.js";
import { endHeaders, endStream, frame, frameType, hpack } from "../../support/http/http2-frames.js";
import { type Frame, takeFrames } from "../../support/http/http2-wire.js";
import { openRawHttp2 } from "../../support/http/raw-connection.js";

const target = useBadInputTarget();

describe("a body with ambiguous length", () => {
  const inner = () =>
    `GET /whoami HTTP/1.1\r\nhost: a\r\nconnection: close\r\nsvc-api-key: ${target.root.key}\r\n\r\n`;

  it.each([
    [
      "a length and chunked encoding",
      () => `content-length: ${inner().length}\r\ntransfer-encoding: chunked`,
    ],
    ["chunked encoding and a length", () => "transfer-encoding: chunked\r\ncontent-length: 0"],
    ["two lengths", () => `content-length: 0\r\ncontent-length: ${inner().length}`],
    ["two lengths in one header", () => `content-length: 0, ${inner().length}`],
    ["an empty transfer encoding", () => "transfer-encoding:"],
    ["an unsupported transfer encoding", () => "transfer-encoding: identity"],
    ["a space after a header name", () => "content-length : 0"],
    ["a line without a carriage return", () => "x: 1\ncontent-length: 0"],
  ])("is refused with %s, and the rest is not handled as a request", async (_name, framing) => {
    const head = `POST /access/check HTTP/1.1\r\nhost: a\r\nsvc-api-key: junk\r\n${framing()}`;
    const responses = await sendRaw(target, `${head}\r\n\r\n${inner()}`);
    expect(responses.map(({ status }) => status)).toEqual([400]);
  });
});

describe("a method override", () => {
  it.each(["x-http-method-override", "x-http-method", "x-method-override"])(
    "is ignored in %s",
    async (name) => {
      const headers = { "svc-api-key": target.root.key, [name]: "DELETE" };
      const path = `/applications/${target.privateId}`;
      expect((await send(target, path, { headers })).status).toBe(200);
      expectProblem(
        await send(target, path, { method: "POST", headers }),
        405,
        "method_not_allowed",
      );
      expectProblem(
        await send(target, `${path}?_method=DELETE`, { headers }),
        400,
        "invalid_request",
      );
    },
  );
});

describe("two If-Match headers, the second one current", () => {
  const getCurrentTag = async () => {
    const headers = { "svc-api-key": target.root.key };
    const { headers: responseHeaders } = await send(target, `/applications/${target.privateId}`, {
      headers,
    });
    return String(responseHeaders.etag);
  };

  it("are refused over HTTP/1.1", async () => {
    const lines = `if-match: "0"\r\nif-match: ${await getCurrentTag()}\r\n`;
    const [response] = await sendRaw(
      target,
      `DELETE /applications/${target.privateId} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n` +
        `svc-api-key: ${target.root.key}\r\n${lines}\r\n`,
    );
    expectRepeated(JSON.parse(response?.body ?? ""));
  });

  it("are refused over HTTP/2", async () => {
    const head = hpack([
      [":method", "DELETE"],
      [":scheme", "http"],
      [":path", `/applications/${target.privateId}`],
      [":authority", "localhost"],
      ["svc-api-key", target.root.key],
      ["if-match", '"0"'],
      ["if-match", await getCurrentTag()],
    ]);
    const frames = await exchangeFrames(frame(frameType.headers, endHeaders | endStream, 1, head));
    const body = frames.filter(({ type }) => type === "DATA").map(({ payload }) => payload);
    expectRepeated(JSON.parse(Buffer.concat(body).toString()));
  });

  function expectRepeated(problem: unknown): void {
    expect(problem).toMatchObject({
      status: 400,
      code: "invalid_request",
      errors: { "If-Match": [expect.stringContaining("must be one entity tag")] },
    });
  }

  /** Sends a frame on an HTTP/2 connection and returns all frames until the stream ends. */
  async function exchangeFrames(sent: Buffer): Promise<Frame[]> {
    const { socket, received, ended, write } = openRawHttp2(target.port);
    let frames: Frame[] = [];
    socket.on("data", () => {
      frames = [];
      takeFrames(received(), frames);
      if (frames.some(({ stream, isLast }) => stream === 1 && isLast)) {
        socket.destroy();
      }
    });
    write(sent);
    await ended;
    return frames;
  }
});
