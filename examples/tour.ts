// The life of a session over gRPC. Run it with the key that the first start showed:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/tour.ts
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ApplicationService } from "../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../gen/latchkey/v1/session_service_pb.js";

const baseUrl = process.env.LATCHKEY_URL ?? "http://localhost:8080";
const transport = createGrpcTransport({ baseUrl });
const applications = createClient(ApplicationService, transport);
const sessions = createClient(SessionService, transport);
const as = (key = "") => ({ headers: { "SVC-API-KEY": key } });

const admin = as(process.env.SVC_API_KEY);
const permissions = ["token:read", "application:read"];
const backend = await applications.createApplication(
  { name: "Backend", type: "private", permissions },
  admin,
);
const browser = await applications.createApplication(
  { name: "Web shop", type: "public", permissions: ["token:create"] },
  admin,
);

// The browser opens a session, and its backend authorizes it.
const session = await sessions.createSession({}, as(browser.key));
await sessions.authorizeSession({ nonce: session.nonce, permissions }, as(backend.key));

// From now on the key of the session works.
const { name } = await applications.getApplicationByKey({}, as(session.sessionKey));
console.log(`a session of ${name}`);
