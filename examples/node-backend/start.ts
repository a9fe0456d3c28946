// A shop with Latchkey: the page in examples/browser, and the backend that authorizes its sessions.
// One command starts both, with the key that the first start of Latchkey printed:
//
//     SVC_API_KEY=lk_mgt_… node --import tsx examples/node-backend/start.ts
//
// Not the command tsx: it would kill the program before it has cleaned up.
// Latchkey must allow the page: start it with CORS_ORIGINS=http://localhost:5500.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createGuard, createLatchkeyClient } from "latchkey/client";
import type { CreateApplicationRequestSchema } from "latchkey/proto";
import { createBackend } from "./backend.js";
import { createPageServer } from "./page-server.js";
import { refusalOfPage } from "./preflight.js";

const latchkeyUrl = process.env.LATCHKEY_URL ?? "http://localhost:8080";
const pagePort = Number(process.env.PAGE_PORT ?? 5500);
const page = `http://localhost:${pagePort}`;

const refusal = await refusalOfPage(latchkeyUrl, page);
if (refusal) {
  console.error(refusal);
  process.exit(1);
}

// A second Ctrl-C must not interrupt the cleanup.
const stopped = new Promise<unknown>((resolve) => {
  process.on("SIGINT", resolve).on("SIGTERM", resolve);
});

const admin = createLatchkeyClient({ url: latchkeyUrl, key: process.env.SVC_API_KEY ?? "" });
const made: string[] = [];

async function createKey(application: MessageInitShape<typeof CreateApplicationRequestSchema>) {
  const { id, key = "" } = await admin.applications.createApplication(application);
  made.push(id);
  return key;
}

try {
  await serveUntilStopped();
} finally {
  for (const id of made) {
    await admin.applications.deleteApplication({ id });
  }
  admin.close();
}

async function serveUntilStopped() {
  // An administrator does this once and stores the keys in a secret store. An application needs at
  // least one permission; the page does not use its own.
  const publicKey = await createKey({
    name: "Shop page",
    type: "public",
    permissions: ["shop:visit"],
    allowedOrigins: [page],
  });
  // The backend can grant only permissions that it holds. Its guard needs access:check.
  const privateKey = await createKey({
    name: "Shop backend",
    type: "private",
    permissions: ["token:read", "access:check"],
  });

  const latchkey = createLatchkeyClient({ url: latchkeyUrl, key: privateKey });
  const guard = createGuard({ url: latchkeyUrl, key: privateKey });
  const backend = createBackend({ latchkey, guard, page }).listen(0, "localhost");
  await once(backend, "listening");
  const backendUrl = `http://localhost:${(backend.address() as AddressInfo).port}`;

  const settings = { latchkey: latchkeyUrl, backend: backendUrl, publicKey };
  const pageServer = createPageServer(settings).listen(pagePort, "localhost");
  await once(pageServer, "listening");
  console.log(`Open ${page} (Ctrl+C ends it)`);

  await stopped;
  for (const server of [pageServer, backend]) {
    server.close().closeAllConnections();
  }
  await guard.close();
  latchkey.close();
}
