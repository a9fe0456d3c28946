import type { Generator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import type { Server } from "./servers.js";

/** The keys that the requests of the benchmark come with. */
export interface Keys {
  readonly management: string;
  readonly public: string;
  readonly private: readonly string[];
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

/** Fills a store through the API, which also warms the server up. */
export async function seed(server: Server, generator: Generator, key: string): Promise<Keys> {
  async function createApplications(bodies: readonly string[]): Promise<string[]> {
    const load: Load = {
      protocol: "rest",
      port: server.port,
      connections,
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
    return answers.map((answer) => JSON.parse(answer).key);
  }

  const [publicKey = ""] = await createApplications([publicApplication]);
  const privateKeys = await createApplications(
    Array.from({ length: seededApplications }, () => privateApplication),
  );
  return { management: key, public: publicKey, private: privateKeys };
}
