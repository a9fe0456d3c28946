import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createLatchkeyClient } from "../../src/client/node.js";
import type { ApplicationType } from "../../src/contract/grants.js";
import { newId } from "../../src/lib/uuid.js";
import type { Store } from "../../src/store/port/store.js";
import type { ImportedApplication } from "../../src/store/port/transfer.js";
import { anImportedApplication } from "../contract/store/transfer-fixtures.js";
import type { TestServer } from "../support/service/server.js";

/** A tenant with something of everything in it. */
export interface DemoTenant {
  /** May do everything in it. */
  readonly key: string;
  readonly shopId: string;
  readonly backendId: string;
}

const names = [
  "Invoices",
  "Fraud checks",
  "Ledger export",
  "Support desk",
  "Mobile app",
  "Reports",
];
const minute = 60_000;
const day = 1_440 * minute;

/** Makes a tenant with applications, sessions and a trail, by calling as its people would. */
export async function seedDemoTenant(server: TestServer): Promise<DemoTenant> {
  const { url, clock } = server;
  clock.advance(-names.length * day);
  const root = await server.createTenant();
  const { applications } = createLatchkeyClient({ url, key: root.key });
  for (const [place, name] of names.entries()) {
    await applications.createApplication({
      name,
      type: place === 4 ? "public" : "private",
      permissions: ["token:read"],
      ...(place === 2 && { expiresAt: timestampFromMs(clock.now() + 12 * day) }),
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
  clock.advance((names.length - 3) * minute);
  await openSessions(url, shopKey, backend.key ?? "");
  return { key: root.key, shopId: shop.id, backendId: backend.id };
}

/** Three of a shop, of which its backend authorizes two. */
async function openSessions(url: string, shopKey: string, backendKey: string): Promise<void> {
  const browser = createLatchkeyClient({ url, key: shopKey }).sessions;
  const backend = createLatchkeyClient({ url, key: backendKey }).sessions;
  for (const isAuthorized of [true, true, false]) {
    const { nonce } = await browser.createSession({});
    if (isAuthorized) {
      await backend.authorizeSession({ nonce, permissions: ["token:read"] });
    }
  }
}

const types: readonly ApplicationType[] = ["private", "public", "management"];
const start = Date.UTC(2025, 0);
const batch = 500;

/** Puts many applications into a tenant: `Service 0`, the oldest, to the last one, by turns of each type. */
export async function seedApplications(
  { transfer }: Store,
  tenantId: string,
  count: number,
): Promise<readonly ImportedApplication[]> {
  const made = Array.from({ length: count }, (_, place) =>
    anImportedApplication({
      id: newId(start + place),
      createdAt: start + place,
      tenantId,
      name: `Service ${place}`,
      type: types[place % types.length] as ApplicationType,
    }),
  );
  for (let first = 0; first < count; first += batch) {
    await transfer.importApplications(made.slice(first, first + batch), {
      replace: false,
      dryRun: false,
    });
  }
  return made;
}
