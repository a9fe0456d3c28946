import type * as keys from "../src/auth/keys.js";
import type * as settings from "../src/config/settings.js";
import type { RuleRecord } from "../src/contract/grants.js";
import type * as keyText from "../src/contract/key-text.js";
import type * as uuid from "../src/lib/uuid.js";
import type * as stores from "../src/store/open-store.js";
import type { Store } from "../src/store/port/store.js";
import { audit } from "../test/support/store/audit.js";
import type { LoadGenerator } from "./load/generator.js";
import {
  type Bootstrapped,
  bootstrap,
  type LatchkeyOptions,
  loadBuilt,
  type Server,
  type StoreEnvironment,
  startLatchkey,
} from "./servers.js";

/** The keys of the requests. */
export interface Keys {
  readonly management: string;
  /** Holds `access:check`. */
  readonly checking: string;
  readonly public: string;
  /** A sample of the private applications, in random order. */
  readonly private: readonly CreatedApplication[];
}

export interface CreatedApplication {
  readonly id: string;
  readonly key: string;
}

export const seededApplications = 10_000;

/** The maximum size of the sample. */
const maxKeys = 50_000;
/** Concurrent creates share commits in the embedded store and connections in MongoDB. */
const embeddedConcurrency = 500;
const mongoConcurrency = 50;

const containers = ["/pci/", "/pii/", "/health/", "/finance/", "/general/"];
const rules: readonly Omit<RuleRecord, "conditions">[] = containers.map((container, index) => ({
  description: `What the checkout may do in ${container}`,
  priority: index + 1,
  container,
  transform: "mask",
  permissions: ["token:read", "token:search"],
}));

/** A typical backend: a few permissions and five rules. */
const backend = {
  name: "Checkout backend of the benchmark",
  type: "private",
  permissions: ["application:read", "token:read", "token:create"],
} as const;

const page = {
  name: "Checkout page of the benchmark",
  type: "public",
  permissions: ["token:create"],
} as const;

const tokenService = {
  name: "Token service of the benchmark",
  type: "private",
  permissions: ["access:check"],
} as const;

/** The request body that creates a private application. */
export const privateApplication = JSON.stringify({ ...backend, rules });

/** The request body that renames it. */
export const applicationUpdate = (name: string) =>
  JSON.stringify({ name, permissions: backend.permissions, rules });

/** Fills a store directly. A million applications through the service would take too long. */
export async function seed(environment: StoreEnvironment, count: number): Promise<Keys> {
  const first = await bootstrap(environment);
  const store = await openStore(environment);
  try {
    const create = await createApplicationFactory(store, first);
    const publicApplication = await create({ ...page, rules: [] });
    const checkingApplication = await create({ ...tokenService, rules: [] });
    const ruleRecords = rules.map((rule) => ({ ...rule, conditions: [] }));
    const concurrency = environment.MONGODB_URI ? mongoConcurrency : embeddedConcurrency;
    const sample = await createMany(count, concurrency, () =>
      create({ ...backend, rules: ruleRecords }),
    );
    return {
      management: first.key,
      checking: checkingApplication.key,
      public: publicApplication.key,
      private: shuffle(sample),
    };
  } finally {
    await store.close();
  }
}

/** Fills a store by requests, which any commit understands. */
export async function seedThroughService(
  environment: StoreEnvironment,
  options: LatchkeyOptions,
  generator: LoadGenerator,
  count: number,
): Promise<Keys> {
  const { key: management } = await bootstrap(environment, options.folder);
  const server = await startLatchkey(environment, options);
  const bodies = [page, tokenService].map((application) => JSON.stringify(application));
  const create = async (all: readonly string[], connections: number) => {
    const requests = all.map((body) => ({ key: management, body }));
    const load = { ...createLoad(server), connections, requests };
    const { responses } = await generator.run(server, load, Number.POSITIVE_INFINITY);
    return responses.map((response): CreatedApplication => JSON.parse(response));
  };
  // One at a time, so that the responses are in order.
  const [publicApplication, checkingApplication] = await create(bodies, 1);
  const privateApplications = await create(Array(count).fill(privateApplication), seedConnections);
  await server.stop();
  return {
    management,
    checking: checkingApplication?.key ?? "",
    public: publicApplication?.key ?? "",
    private: shuffle(privateApplications),
  };
}

const seedConnections = 32;

function createLoad({ port }: Server) {
  return {
    protocol: "http1",
    port,
    verb: "POST",
    path: "/applications",
    status: 201,
    once: true,
    keepResponses: true,
  } as const;
}

async function openStore(environment: StoreEnvironment): Promise<Store> {
  const { readSettings } = await loadBuilt<typeof settings>("config/settings.js");
  const { openStore } = await loadBuilt<typeof stores>("store/open-store.js");
  return openStore(readSettings(environment));
}

type ApplicationFactory = (
  application: (typeof backend | typeof page | typeof tokenService) & {
    readonly rules: readonly RuleRecord[];
  },
) => Promise<CreatedApplication>;

async function createApplicationFactory(
  store: Store,
  first: Bootstrapped,
): Promise<ApplicationFactory> {
  const { newId } = await loadBuilt<typeof uuid>("lib/uuid.js");
  const { createKeyring, generateKey } = await loadBuilt<typeof keys>("auth/keys.js");
  const { kindFor } = await loadBuilt<typeof keyText>("contract/key-text.js");
  const keyring = createKeyring();
  return async (application) => {
    const id = newId(Date.now());
    const key = generateKey(kindFor(application.type), id);
    await store.applications.create(
      {
        ...application,
        id,
        tenantId: first.tenant_id,
        createdBy: first.application_id,
        key: { id: newId(Date.now()), hash: keyring.hash(key) },
      },
      audit.created,
    );
    return { id, key };
  };
}

async function createMany(
  count: number,
  concurrency: number,
  create: () => Promise<CreatedApplication>,
) {
  const step = Math.ceil(count / maxKeys);
  const sample: CreatedApplication[] = [];
  let started = 0;
  async function createRemaining(): Promise<void> {
    while (started < count) {
      const index = started++;
      const application = await create();
      if (index % step === 0) {
        sample.push(application);
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, createRemaining));
  return sample;
}

function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
