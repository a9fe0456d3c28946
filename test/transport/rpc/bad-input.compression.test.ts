import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { callRaw, detailsOf, envelope } from "../../support/http/raw-grpc.js";
import { repetitions } from "../../support/jest/suite.js";
import { watchMemory } from "../../support/memory.js";
import { useService } from "../../support/service/service-process.js";

// Runs in a separate process, because its memory is measured, and because the library
// cannot distinguish zlib errors in jest's sandbox.
const megabyte = 1024 * 1024;
/** The size of the decompressed message. The limit is one megabyte. */
const size = 256 * megabyte;
const rounds = repetitions({ quick: 1, full: 2 });
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

describe("a decompression bomb", () => {
  const service = useService();

  async function call(type: string, headers: object, body: Uint8Array) {
    const all = { "content-type": type, "svc-api-key": service.firstKey, ...headers };
    return callRaw(service, createApplicationPath, { headers: all, body });
  }

  it.each<[encoding: string, bomb: () => Uint8Array]>([
    ["gzip", () => gzipSync(Buffer.alloc(size))],
    ["br", () => brotliCompressSync(Buffer.alloc(size), quality)],
  ])("is refused at the limit, over every protocol: %s", async (encoding, bomb) => {
    const bytes = bomb();
    expect(bytes.length).toBeLessThan(megabyte);
    const memory = await watchMemory(service.process.child.pid);
    for (let round = 0; round < rounds; round++) {
      const grpc = await call(
        "application/grpc",
        { "grpc-encoding": encoding },
        envelope(bytes, 1),
      );
      expect(grpc.headers["grpc-status"]).toBe("8");
      expect(detailsOf(grpc).info?.reason).toBe("BODY_TOO_LARGE");
      const web = await call(
        "application/grpc-web+proto",
        { "grpc-encoding": encoding },
        envelope(bytes, 1),
      );
      expect(web.body.toString()).toContain("grpc-status: 8\r\n");
      const connect = await call("application/json", { "content-encoding": encoding }, bytes);
      expect(JSON.parse(connect.body.toString()).code).toBe("resource_exhausted");
    }
    expect(await memory.growth()).toBeLessThan(128 * megabyte);
  });
});
