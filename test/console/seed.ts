import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createLatchkeyClient } from "../../src/client/node.js";
import type { ApplicationType } from "../../src/contract/grants.js";
import { newId } from "../../src/lib/uuid.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import type { Store } from "../../src/store/port/store.js";
import { anImportedApplication } from "../contract/store/transfer-fixtures.js";
import type { TestServer } from "../support/service/server.js";

/** A tenant with applications, sessions and events. */
export interface DemoTenant {
  /** The key of an administrator. */
  readonly key: string;
  readonly shopId: string;
  readonly backendId: string;
  /** An authorized session of the shop. */
  readonly sessionId: string;
}

const applicationNames = [
  "Invoices",
  "Fraud checks",
  "Ledger export",
  "Support desk",
  "Mobile app",
  "Reports",
];
const minute = 60_000;
const day = 1_440 * minute;

/** Creates a tenant through the API, with the clock advancing over several days. */
export async function seedDemoTenant(server: TestServer): Promise<DemoTenant> {
  const { url, clock } = server;
  clock.advance(-applicationNames.length * day);
  const root = await server.createTenant();
  const { applications } = createLatchkeyClient({ url, key: root.key });
  for (const [index, name] of applicationNames.entries()) {
    await applications.createApplication({
      name,
      type: index === 4 ? "public" : "private",
      permissions: ["token:read"],
      ...(index === 2 && { expiresAt: timestampFromMs(clock.now() + 12 * day) }),
    });
    clock.advance(day - minute);
  }
  const backend = await applications.createApplication({
    name: "Checkout backend",
    type: "private",
    permissions: ["token:create", "token:read"],
    rules: [
      {
        description: "Cards, masked",
        priority: 1,
        container: "/pci/",
        transform: "mask",
        permissions: ["token:read"],
      },
      {
        description: "Addresses in full",
        priority: 2,
        container: "/pii/addresses/",
        transform: "reveal",
        permissions: ["token:read", "token:use"],
      },
    ],
  });
  clock.advance(minute);
  const shop = await applications.createApplication({
    name: "Storefront",
    description: "Sells to consumers on the web.",
    externalId: "svc-4711",
    metadata: { team: "payments", "cost-center": "4200" },
    type: "public",
    permissions: ["token:create"],
    allowedCidrs: ["127.0.0.0/8"],
  });
  clock.advance(minute);
  const { key: shopKey = "" } = await applications.regenerateApplicationKey({
    id: shop.id,
    gracePeriod: { seconds: 3_600n, nanos: 0 },
  });
  const [unused] = (await applications.listApplications({ namePrefix: "Reports" })).data;
  clock.advance(minute);
  await applications.disableApplication({ id: unused?.id ?? "" });
  clock.advance((applicationNames.length - 3) * minute);
  const sessionId = await openSessions(url, shopKey, backend.key ?? "");
  return { key: root.key, shopId: shop.id, backendId: backend.id, sessionId };
}

/** Opens three sessions of a shop, two of them authorized by its backend. Returns the id of one. */
async function openSessions(url: string, shopKey: string, backendKey: string): Promise<string> {
  const browser = createLatchkeyClient({ url, key: shopKey }).sessions;
  const backend = createLatchkeyClient({ url, key: backendKey }).sessions;
  await browser.createSession({});
  let authorizedId = "";
  for (const _ of [1, 2]) {
    const { id, nonce } = await browser.createSession({});
    await backend.authorizeSession({ nonce, permissions: ["token:read"] });
    authorizedId = id;
  }
  return authorizedId;
}

const types: readonly ApplicationType[] = ["private", "public", "management"];
const firstCreatedAt = Date.UTC(2025, 0);
/** Small, so that a batch stays within the write timeout on a busy machine. */
const batchSize = 100;

/** Imports applications of alternating types into a tenant. `Service 0` is the oldest. */
export async function seedApplications(
  { transfer }: Store,
  tenantId: string,
  count: number,
): Promise<readonly ApplicationFields[]> {
  const applications = Array.from({ length: count }, (_, index) =>
    anImportedApplication({
      id: newId(firstCreatedAt + index),
      createdAt: firstCreatedAt + index,
      tenantId,
      name: `Service ${index}`,
      type: types[index % types.length] as ApplicationType,
    }),
  );
  for (let first = 0; first < count; first += batchSize) {
    await transfer.importApplications(applications.slice(first, first + batchSize), {
      replace: false,
      dryRun: false,
    });
  }
  return applications;
}
