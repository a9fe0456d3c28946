import { MongoClient } from "mongodb";
import type { Instance } from "../../context.js";
import { type Estimate, estimate } from "../../report/estimate.js";
import { applicationUpdate, privateApplication } from "../../seed.js";
import { addressOf } from "../../servers.js";

/** What a change may send to the primary, without the commit. */
const counted = ["aggregate", "bulkWrite", "delete", "find", "findAndModify", "insert", "update"];

const repetitions = 10;

/** Counts the commands that each kind of change sends, and returns those of the most expensive one. */
export async function countRoundTrips({ server, keys, store }: Instance): Promise<Estimate> {
  const client = await new MongoClient(store.MONGODB_URI ?? "").connect();

  async function countCommands(): Promise<number> {
    const { metrics } = await client.db("admin").command({ serverStatus: 1 });
    return counted.reduce((sum, name) => sum + Number(metrics.commands[name]?.total ?? 0), 0);
  }

  async function send(verb: string, path: string, key: string, body?: string) {
    const response = await fetch(`${addressOf(server)}${path}`, {
      method: verb,
      headers: { "svc-api-key": key, "content-type": "application/json" },
      ...(body && { body }),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`${verb} ${path} returned ${response.status} ${text}`);
    }
    return text === "" ? {} : JSON.parse(text);
  }

  const counts = new Map<string, number[]>();
  async function count(change: string, ...request: Parameters<typeof send>) {
    const before = await countCommands();
    const result = await send(...request);
    counts.set(change, [...(counts.get(change) ?? []), (await countCommands()) - before]);
    return result;
  }

  try {
    const { management, public: publicKey, private: applications } = keys;
    const key = applications[0]?.key ?? "";
    for (let index = 0; index < repetitions; index++) {
      const { id } = await count("create", "POST", "/applications", management, privateApplication);
      await count("update", "PUT", `/applications/${id}`, management, applicationUpdate("Renamed"));
      await count("delete", "DELETE", `/applications/${id}`, management);
      const { nonce } = await count("open", "POST", "/sessions", publicKey);
      const authorization = JSON.stringify({ nonce, permissions: ["token:create"] });
      await count("authorize", "POST", "/sessions/authorize", key, authorization);
    }
  } finally {
    await client.close();
  }
  // Other work of the service only adds commands.
  const changes = [...counts.values()].map(estimate);
  return changes.reduce((a, b) => (a.lowest >= b.lowest ? a : b));
}
