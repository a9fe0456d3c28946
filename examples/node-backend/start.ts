// A shop with Latchkey: the page in examples/browser, and the backend that authorizes its sessions.
// One command starts both, with the key that the first start of Latchkey showed:
//
//     SVC_API_KEY=lk_mgt_… node --import tsx examples/node-backend/start.ts
//
// The command tsx would kill a program that is slow to end, which has to clean up here.
// Latchkey has to know the page: start it with CORS_ORIGINS=http://localhost:5500.
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

// A second Ctrl+C must not cut the cleaning short.
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
  // An administrator does this once, and keeps the keys where your secrets are. An application
  // holds at least one permission: that of the page is good for nothing here.
  const publicKey = await createKey({
    name: "Shop page",
    type: "public",
    permissions: ["shop:visit"],
    allowedOrigins: [page],
  });
  // The backend may grant only what it holds itself, and asks about keys as the guard of its cards.
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
