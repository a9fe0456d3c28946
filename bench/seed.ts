import type { Generator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import type { Server } from "./servers.js";

/** The keys that the requests of the benchmark come with. */
export interface Keys {
  readonly management: string;
  /** Of a service that asks what others may do. */
  readonly checking: string;
  readonly public: string;
  readonly private: readonly string[];
}

/** An application that was made, with its key. */
export interface Made {
  readonly id: string;
  readonly key: string;
}

export const seededApplications = 1_000;
export const connections = 32;

const containers = ["/pci/", "/pii/", "/health/", "/finance/", "/general/"];

/** An application as a backend has it: a few permissions and five rules. */
export const privateApplication = JSON.stringify({
  name: "Checkout backend of the benchmark",
  type: "private",
  permissions: ["application:read", "token:read", "token:create"],
  rules: containers.map((container, at) => ({
    description: `What the checkout may do in ${container}`,
    priority: at + 1,
    container,
    transform: "mask",
    permissions: ["token:read", "token:search"],
  })),
});

const publicApplication = JSON.stringify({
  name: "Checkout page of the benchmark",
  type: "public",
  permissions: ["token:create"],
});

const checkingApplication = JSON.stringify({
  name: "Token service of the benchmark",
  type: "private",
  permissions: ["access:check"],
});

/** Makes applications through the API. */
export async function createApplications(
  server: Server,
  generator: Generator,
  key: string,
  bodies: readonly string[],
): Promise<Made[]> {
  const load: Load = {
    protocol: "rest",
    port: server.port,
    connections: Math.min(connections, bodies.length),
    seconds: 60,
    verb: "POST",
    path: "/applications",
    status: 201,
    requests: bodies.map((body) => ({ key, body })),
    once: true,
    keepAnswers: true,
  };
  const { answers } = await generator.run(load);
  if (answers.length < bodies.length) {
    throw new Error(`only ${answers.length} applications could be made in ${load.seconds} s`);
  }
  return answers.map((answer) => JSON.parse(answer));
}

/** Fills a store through the API, which also warms the server up. */
export async function seed(server: Server, generator: Generator, key: string): Promise<Keys> {
  const create = (bodies: readonly string[]) => createApplications(server, generator, key, bodies);
  const [forPublic] = await create([publicApplication]);
  const [forChecking] = await create([checkingApplication]);
  const forPrivate = await create(
    Array.from({ length: seededApplications }, () => privateApplication),
  );
  return {
    management: key,
    checking: forChecking?.key ?? "",
    public: forPublic?.key ?? "",
    private: forPrivate.map((made) => made.key),
  };
}
