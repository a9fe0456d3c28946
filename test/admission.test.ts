import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startServer, type TestServer } from "./support/server.js";

describe("a caller without a good key is refused before its message has come", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
  });

  afterAll(() => server.close());

  /** Sends headers, and a body that never ends, and answers what comes back. */
  async function ask(path: string, type: string): Promise<Record<string, unknown>> {
    const session = connect(server.url);
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
    stream.write("{");
    const got = await new Promise<Record<string, unknown>>((resolve, reject) => {
      let headers = {};
      stream.on("response", (response) => {
        headers = response;
      });
      stream.on("trailers", (trailers) => {
        headers = { ...headers, ...trailers };
      });
      stream.on("error", reject);
      stream.on("end", () => resolve(headers));
      stream.resume();
    });
    session.destroy();
    return got;
  }

  it("over REST", async () => {
    expect(await ask("/applications", "application/json")).toMatchObject({ ":status": 401 });
  });

  it("over Connect", async () => {
    const path = "/latchkey.v1.ApplicationService/CreateApplication";
    expect(await ask(path, "application/json")).toMatchObject({ ":status": 401 });
  });

  it("over gRPC", async () => {
    const path = "/latchkey.v1.ApplicationService/CreateApplication";
    expect(await ask(path, "application/grpc")).toMatchObject({ "grpc-status": "16" });
  });
});
