import { createLatchkeyClient } from "../../src/client/node.js";
import type { TestServer } from "../support/service/server.js";

/** A tenant whose texts are as long as the API accepts. */
export interface LongTenant {
  /** The key of an administrator. */
  readonly key: string;
  readonly publicId: string;
  readonly privateId: string;
  readonly sessionId: string;
}

const lengthOfNames = 200;

/** One word, which cannot wrap between words. */
const oneWord = "Payments-reconciliation-".repeat(9).slice(0, lengthOfNames);
const manyWords = "Checkout of the shop in Nordrhein-Westfalen ".repeat(5).slice(0, lengthOfNames);

/** 100 characters. */
const permission = (index: number) => `service-${index}:${"r".repeat(58)}:${"w".repeat(30)}`;
const permissions = Array.from({ length: 12 }, (_, index) => permission(index));
const gracePeriod = { seconds: 3_600n, nanos: 0 };

const origin = `https://${"shop.".repeat(40)}example.com`;

/** Creates applications with long names, permissions and rules, several keys, sessions and denials. */
export async function seedLongContent(server: TestServer): Promise<LongTenant> {
  const { url } = server;
  const root = await server.createTenant();
  const { applications } = createLatchkeyClient({ url, key: root.key });
  const texts = {
    description: `${"D".repeat(120)} ${"A description of many words. ".repeat(12)}`,
    externalId: "e".repeat(200),
    metadata: { ["k".repeat(40)]: "v".repeat(500), team: "payments" },
  };
  const rule = {
    description: `${"R".repeat(120)} ${"Cards, masked. ".repeat(20)}`.trim(),
    priority: 123_456_789,
    container: `/${"pci".repeat(60)}/high/`,
    transform: "mask",
    permissions: permissions.slice(0, 6),
  };
  const backend = await applications.createApplication({
    ...texts,
    name: oneWord,
    type: "private",
    permissions: ["session:read", "application:read", ...permissions],
    rules: [rule, { ...rule, priority: 1, transform: "reveal" }],
    expiresAt: { seconds: BigInt(Math.floor(server.clock.now() / 1_000) + 20 * 86_400), nanos: 0 },
  });
  const shop = await applications.createApplication({
    ...texts,
    externalId: "s".repeat(200),
    name: manyWords,
    type: "public",
    permissions,
    allowedOrigins: [origin],
    allowedCidrs: ["2001:db8:1234:5678:9abc:def0:1234:0/112", "127.0.0.0/8"],
  });
  for (const name of ["Reports", `${oneWord.slice(0, 190)} (old)`]) {
    const { id } = await applications.createApplication({
      name,
      type: "management",
      permissions: ["application:read"],
    });
    await applications.disableApplication({ id });
  }
  await applications.regenerateApplicationKey({ id: backend.id, gracePeriod });
  const { key: backendKey = "" } = await applications.regenerateApplicationKey({
    id: backend.id,
    gracePeriod,
  });
  const openSession = () => openInBrowser(url, shop.key ?? "");
  const authorizer = createLatchkeyClient({ url, key: backendKey });
  let sessionId = "";
  for (const _ of [1, 2, 3]) {
    const { id, nonce } = await openSession();
    await authorizer.sessions.authorizeSession({
      nonce,
      permissions: permissions.slice(0, 3),
      expiresAt: { seconds: BigInt(Math.floor(server.clock.now() / 1_000) + 86_400 * 9), nanos: 0 },
    });
    sessionId = id;
  }
  await openSession();
  // Denials have the longest rows.
  await authorizer.applications.deleteApplication({ id: shop.id }).catch(() => {});
  await authorizer.sessions.revokeAllSessions({ id: shop.id }).catch(() => {});
  return { key: root.key, publicId: shop.id, privateId: backend.id, sessionId };
}

/** Opens a session as a browser does, with the origin of its page. */
async function openInBrowser(
  url: string,
  key: string,
): Promise<{ readonly id: string; readonly nonce: string }> {
  const response = await fetch(`${url}/sessions`, {
    method: "POST",
    headers: { "svc-api-key": key, origin },
  });
  return (await response.json()) as { id: string; nonce: string };
}
