import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterEach, describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../src/auth/keys.js";
import { createGuard } from "../../src/client/create-guard.js";
import { newId } from "../../src/lib/uuid.js";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) {
    await cleanup();
  }
});

/** Starts a service with silent streams, as behind a buffering proxy. Its slow checks wait to be released. */
async function startSilentService() {
  const waiting: (() => void)[] = [];
  const handler = connectNodeAdapter({
    routes: ({ service }) => {
      service(AccessService, {
        async checkAccess({ permission }) {
          if (permission === "token:slow") {
            await new Promise<void>((resolve) => waiting.push(resolve));
          }
          return { allowed: true };
        },
        watchCredentials: (_request, { signal }) => waitForAbort(signal),
      });
    },
  });
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, waiting };
}

function waitForAbort(signal: AbortSignal): AsyncIterable<never> {
  const next = async () => {
    await once(signal, "abort");
    return { done: true, value: undefined } as const;
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

describe("a guard with a silent change stream", () => {
  it("aborts the stream, but not the checks that the service still serves", async () => {
    const { url, waiting } = await startSilentService();
    let errors = 0;
    const guard = createGuard({
      url,
      key: generateKey("prv", newId(Date.now())),
      maxStaleness: 200,
      timeout: 60_000,
      onError: () => {
        errors++;
      },
    });
    cleanups.push(guard.close);
    const principal = generateKey("prv", newId(Date.now()));
    const slow = guard.check(principal, "token:slow");
    while (errors === 0) {
      expect(await guard.check(principal, "token:read")).toMatchObject({
        allowed: true,
        source: "service",
      });
    }
    for (const release of waiting) {
      release();
    }
    expect(await slow).toMatchObject({ allowed: true, source: "service" });
  });
});
