// A shop: the page in examples/browser and the backend that authorizes its sessions. Set
// SVC_API_KEY to the key from the first start of Latchkey:
//
//     SVC_API_KEY=lk_mgt_… node --import tsx examples/node-backend/start.ts
//
// Not with the tsx command, which kills a program before it has cleaned up.
// Start Latchkey with CORS_ORIGINS=http://localhost:5500.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createGuard, createLatchkeyClient } from "latchkey/client";
import type { CreateApplicationRequestSchema } from "latchkey/proto";
import { createBackend } from "./backend.js";
import { createPageServer } from "./page-server.js";
import { findCorsProblem } from "./preflight.js";

const latchkeyUrl = process.env.LATCHKEY_URL ?? "http://localhost:8080";
const pagePort = Number(process.env.PAGE_PORT ?? 5500);
const page = `http://localhost:${pagePort}`;

const problem = await findCorsProblem(latchkeyUrl, page);
if (problem) {
  console.error(problem);
  process.exit(1);
}

// A second Ctrl+C must not interrupt the cleanup.
const stopped = new Promise<unknown>((resolve) => {
  process.on("SIGINT", resolve).on("SIGTERM", resolve);
});

const admin = createLatchkeyClient({ url: latchkeyUrl, key: process.env.SVC_API_KEY });
const createdIds: string[] = [];

async function createKey(application: MessageInitShape<typeof CreateApplicationRequestSchema>) {
  const { id, key = "" } = await admin.applications.createApplication(application);
  createdIds.push(id);
  return key;
}

try {
  await serveUntilStopped();
} finally {
  for (const id of createdIds) {
    await admin.applications.deleteApplication({ id });
  }
  admin.close();
}

async function serveUntilStopped() {
  // An administrator does this once and stores the keys as secrets. An application needs at least
  // one permission. The permission of the page has no effect here.
  const publicKey = await createKey({
    name: "Shop page",
    type: "public",
    permissions: ["shop:visit"],
    allowedOrigins: [page],
  });
  // The backend can grant only its own permissions. Its guard needs access:check.
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
  console.log(`Open ${page} (Ctrl+C to stop)`);

  await stopped;
  for (const server of [pageServer, backend]) {
    server.close().closeAllConnections();
  }
  await guard.close();
  latchkey.close();
}
