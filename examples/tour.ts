// The lifecycle of a session over gRPC. Set SVC_API_KEY to the key from the first start:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/tour.ts
import { createLatchkeyClient } from "latchkey/client";

const url = process.env.LATCHKEY_URL ?? "http://localhost:8080";
const as = (key = "") => createLatchkeyClient({ url, key });

const admin = as(process.env.SVC_API_KEY);
const backendApplication = await admin.applications.createApplication({
  name: "Backend",
  type: "private",
  permissions: ["token:read", "application:read"],
});
const browserApplication = await admin.applications.createApplication({
  name: "Web shop",
  type: "public",
  permissions: ["token:create"],
});
const backend = as(backendApplication.key);
const browser = as(browserApplication.key);

// The browser opens a session, and its backend authorizes it.
const { sessionKey, nonce } = await browser.sessions.createSession({});
await backend.sessions.authorizeSession({ nonce, permissions: ["token:read"] });

// From now on the key of the session works.
const { transform } = await admin.access.checkAccess({
  key: sessionKey,
  permission: "token:read",
  token: { container: "/pci/" },
});
console.log(`a session of ${browserApplication.name} may read tokens: ${transform}`);

for (const client of [admin, backend, browser]) {
  client.close();
}
