import type { Generator } from "../load/generator.js";
import type { Load } from "../load/load.js";
import { type Made, privateApplication } from "../seed.js";
import type { Subject } from "../subjects.js";

const lanes = 32;

/** Makes applications through the API. */
export async function createApplications(
  { server, keys }: Subject,
  generator: Generator,
  count: number,
): Promise<Made[]> {
  const load: Load = {
    protocol: "http1",
    port: server.port,
    connections: Math.min(lanes, count),
    seconds: 60,
    verb: "POST",
    path: "/applications",
    status: 201,
    requests: Array.from({ length: count }, () => ({
      key: keys.management,
      body: privateApplication,
    })),
    once: true,
    keepAnswers: true,
  };
  const { answers } = await generator.run(load);
  if (answers.length < count) {
    throw new Error(`only ${answers.length} applications could be made in ${load.seconds} s`);
  }
  return answers.map((answer) => JSON.parse(answer));
}
