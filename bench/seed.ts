import type { LoadGenerator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import {
  bootstrap,
  type LatchkeyOptions,
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
/** How many applications are created before the responses are fetched. */
const chunk = 10_000;
const seedConnections = 32;

const containers = ["/pci/", "/pii/", "/health/", "/finance/", "/general/"];
const rules = containers.map((container, index) => ({
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

/** Fills a store by requests, which any commit understands. */
export async function seed(
  environment: StoreEnvironment,
  options: LatchkeyOptions,
  generator: LoadGenerator,
  count: number,
): Promise<Keys> {
  const { key: management } = await bootstrap(environment, options.folder);
  const server = await startLatchkey(environment, options);
  const create = async (body: string, number: number): Promise<CreatedApplication[]> => {
    const load: Load = {
      protocol: "http1",
      port: server.port,
      connections: Math.min(number, seedConnections),
      verb: "POST",
      path: "/applications",
      status: 201,
      requests: Array(number).fill({ key: management, body }),
      once: true,
      keepResponses: true,
    };
    const { responses } = await generator.run(server, load, Number.POSITIVE_INFINITY);
    return responses.map((response) => JSON.parse(response));
  };
  const [publicApplication] = await create(JSON.stringify(page), 1);
  const [checkingApplication] = await create(JSON.stringify(tokenService), 1);
  const step = Math.ceil(count / maxKeys);
  const sample: CreatedApplication[] = [];
  for (let created = 0; created < count; created += chunk) {
    const added = await create(privateApplication, Math.min(chunk, count - created));
    sample.push(...added.filter((_, index) => (created + index) % step === 0));
  }
  await server.stop();
  return {
    management,
    checking: checkingApplication?.key ?? "",
    public: publicApplication?.key ?? "",
    private: shuffle(sample),
  };
}

function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
