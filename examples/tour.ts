// Opens, authorizes and checks a session over gRPC. Run it with the key that the first start printed:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/tour.ts
import { createLatchkeyClient } from "latchkey/client";

const url = process.env.LATCHKEY_URL ?? "http://localhost:8080";
const as = (key: string | undefined) => createLatchkeyClient({ url, key });

const admin = as(process.env.SVC_API_KEY);
const backendApplication = await admin.applications.createApplication({
  name: "Tour backend",
  type: "private",
  permissions: ["token:read", "application:read"],
});
const browserApplication = await admin.applications.createApplication({
  name: "Tour page",
  type: "public",
  permissions: ["token:create"],
});
const backend = as(backendApplication.key);
const browser = as(browserApplication.key);

// The browser opens a session, and the backend authorizes it.
const { sessionKey, nonce } = await browser.sessions.createSession({});
await backend.sessions.authorizeSession({ nonce, permissions: ["token:read"] });

// The session key now works.
const { transform } = await admin.access.checkAccess({
  principal: { case: "key", value: sessionKey },
  permission: "token:read",
  token: { container: "/pci/" },
});
console.log(`A session of ${browserApplication.name} may read tokens: ${transform}`);

for (const { id } of [browserApplication, backendApplication]) {
  await admin.applications.deleteApplication({ id });
}
for (const client of [admin, backend, browser]) {
  client.close();
}
