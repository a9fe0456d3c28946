import { readFile } from "node:fs/promises";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type LatchkeyProcess, runLatchkey, withFolder } from "./support/process.js";
import { callRaw, detailsOf, envelope } from "./support/raw-grpc.js";

// In a process of its own, as its memory is what matters, and as jest's
// sandbox keeps the protocol library from telling the errors of zlib apart.
const megabyte = 1024 * 1024;
const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

describe("a small message that grows without end when it is decompressed", () => {
  let latchkey: LatchkeyProcess;
  let url: string;
  let removed: Promise<void>;

  beforeAll(async () => {
    await new Promise<void>((ready, failed) => {
      removed = withFolder(async (folder) => {
        latchkey = runLatchkey(["serve"], { PORT: "0", DATA_DIR: folder });
        try {
          [, url = ""] = await latchkey.until(/listening at (http:\/\/[^"]+)/);
          ready();
        } catch (error) {
          failed(error);
        }
        await latchkey.ended();
      });
    });
  });

  afterAll(async () => {
    latchkey.child.kill("SIGTERM");
    await removed;
  });

  async function call(type: string, headers: object, body: Uint8Array) {
    const [key = ""] = /lk_mgt_[A-Za-z0-9]+/.exec(latchkey.output.stdout) ?? [];
    const all = { "content-type": type, "svc-api-key": key, ...headers };
    return callRaw({ url }, createRpc, { headers: all, body });
  }

  /** The most memory that the process ever had, where the system tells. */
  async function peakMemory(): Promise<number> {
    const status = await readFile(`/proc/${latchkey.child.pid}/status`, "utf8").catch(() => "");
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
  }

  it.each<[encoding: string, bomb: () => Uint8Array]>([
    ["gzip", () => gzipSync(Buffer.alloc(512 * megabyte))],
    ["br", () => brotliCompressSync(Buffer.alloc(512 * megabyte), quality)],
  ])("is stopped at the limit, on every protocol: %s", async (encoding, bomb) => {
    const bytes = bomb();
    expect(bytes.length).toBeLessThan(megabyte);
    const before = await peakMemory();
    for (let round = 0; round < 4; round++) {
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
    expect((await peakMemory()) - before).toBeLessThan(128 * megabyte);
  });
});
