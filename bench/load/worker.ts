/** A process that makes load on demand, so that its work is not counted as the server's. */
import { runAutocannon } from "./autocannon.js";
import { drive } from "./drive.js";
import type { WorkerReply } from "./generator.js";
import type { Load } from "./load.js";

process.on("message", async (load: Load) => {
  process.send?.(await reply(load));
});
process.on("disconnect", () => process.exit());

async function reply(load: Load): Promise<WorkerReply> {
  const isRead = load.protocol === "rest" && load.verb === "GET";
  try {
    return { result: await (isRead ? runAutocannon(load) : drive(load)) };
  } catch (error) {
    return { error: `${load.verb} ${load.path}: ${(error as Error).message}` };
  }
}
