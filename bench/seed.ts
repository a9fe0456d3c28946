import type * as keys from "../src/auth/keys.js";
import type * as settings from "../src/config/settings.js";
import type { RuleRecord } from "../src/contract/grants.js";
import type * as keyFormat from "../src/contract/key-format.js";
import type * as uuid from "../src/lib/uuid.js";
import type * as stores from "../src/store/open-store.js";
import type { Store } from "../src/store/port/store.js";
import { type Bootstrapped, bootstrap, loadBuilt, type StoreEnvironment } from "./servers.js";

/** The keys that the requests of the benchmark come with. */
export interface Keys {
  readonly management: string;
  /** Of a service that asks what others may do. */
  readonly checking: string;
  readonly public: string;
  /** Of all private applications, or of some from all over the store, in no order. */
  readonly private: readonly Made[];
}

/** An application that was made, with its key. */
export interface Made {
  readonly id: string;
  readonly key: string;
}

export const seededApplications = 10_000;

/** Of more applications than these the requests are about some. */
const mostKeys = 50_000;
/** How many creates are under way at a time: in the embedded store they share commits, in MongoDB they share connections. */
const lanesOfEmbedded = 500;
const lanesOfMongo = 50;

const containers = ["/pci/", "/pii/", "/health/", "/finance/", "/general/"];
const rules: readonly Omit<RuleRecord, "conditions">[] = containers.map((container, at) => ({
  description: `What the checkout may do in ${container}`,
  priority: at + 1,
  container,
  transform: "mask",
  permissions: ["token:read", "token:search"],
}));

/** An application as a backend has it: a few permissions and five rules. */
const privateOne = {
  name: "Checkout backend of the benchmark",
  type: "private",
  permissions: ["application:read", "token:read", "token:create"],
} as const;

const publicOne = {
  name: "Checkout page of the benchmark",
  type: "public",
  permissions: ["token:create"],
} as const;

const checkingOne = {
  name: "Token service of the benchmark",
  type: "private",
  permissions: ["access:check"],
} as const;

/** The body that asks for a private application. */
export const privateApplication = JSON.stringify({ ...privateOne, rules });

/** Fills a store, past the service: a million applications would take the service too long. */
export async function seed(environment: StoreEnvironment, count: number): Promise<Keys> {
  const first = await bootstrap(environment);
  const store = await openStore(environment);
  try {
    const create = await creatorFor(store, first);
    const forPublic = await create({ ...publicOne, rules: [] });
    const forChecking = await create({ ...checkingOne, rules: [] });
    const ownRules = rules.map((rule) => ({ ...rule, conditions: [] }));
    const lanes = environment.MONGODB_URI ? lanesOfMongo : lanesOfEmbedded;
    const sample = await createMany(count, lanes, () => create({ ...privateOne, rules: ownRules }));
    return {
      management: first.key,
      checking: forChecking.key,
      public: forPublic.key,
      private: shuffled(sample),
    };
  } finally {
    await store.close();
  }
}

async function openStore(environment: StoreEnvironment): Promise<Store> {
  const { readSettings } = await loadBuilt<typeof settings>("config/settings.js");
  const { openStore } = await loadBuilt<typeof stores>("store/open-store.js");
  return openStore(readSettings(environment));
}

type Creator = (
  kind: (typeof privateOne | typeof publicOne | typeof checkingOne) & {
    readonly rules: readonly RuleRecord[];
  },
) => Promise<Made>;

async function creatorFor(store: Store, first: Bootstrapped): Promise<Creator> {
  const { newId } = await loadBuilt<typeof uuid>("lib/uuid.js");
  const { createKeyring, makeKey } = await loadBuilt<typeof keys>("auth/keys.js");
  const { kindFor } = await loadBuilt<typeof keyFormat>("contract/key-format.js");
  const keyring = createKeyring();
  return async (kind) => {
    const id = newId(Date.now());
    const key = makeKey(kindFor(kind.type), id);
    await store.applications.create({
      ...kind,
      id,
      tenantId: first.tenant_id,
      createdBy: first.application_id,
      key: { id: newId(Date.now()), hash: keyring.hash(key) },
    });
    return { id, key };
  };
}

async function createMany(count: number, lanes: number, create: () => Promise<Made>) {
  const step = Math.ceil(count / mostKeys);
  const sample: Made[] = [];
  let begun = 0;
  async function keepCreating(): Promise<void> {
    while (begun < count) {
      const place = begun++;
      const made = await create();
      if (place % step === 0) {
        sample.push(made);
      }
    }
  }
  await Promise.all(Array.from({ length: lanes }, keepCreating));
  return sample;
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
