/** A process that makes load on demand. */
import { answerOrders } from "../worker-process.js";
import { runAutocannon } from "./autocannon.js";
import { drive } from "./drive.js";
import type { Load, LoadResult } from "./load.js";

answerOrders<Load, LoadResult>(async (load) => {
  const isRead = load.protocol === "rest" && load.verb === "GET";
  try {
    return await (isRead ? runAutocannon(load) : drive(load));
  } catch (error) {
    throw new Error(`${load.verb} ${load.path}: ${(error as Error).message}`);
  }
});
