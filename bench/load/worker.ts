/** A process that makes load on demand. */
import { answerOrders } from "../worker-process.js";
import { drive } from "./drive.js";
import { runAutocannon } from "./external-tools.js";
import { driveStreams } from "./grpc-streams.js";
import type { Load, LoadResult } from "./load.js";

answerOrders<Load, LoadResult>(async (load) => {
  try {
    return await driverOf(load)(load);
  } catch (error) {
    throw new Error(`${load.verb} ${load.path}: ${(error as Error).message}`);
  }
});

function driverOf(load: Load): (load: Load) => Promise<LoadResult> {
  if (load.protocol === "stream") {
    return driveStreams;
  }
  const isPlainRead = load.protocol === "http1" && load.verb === "GET";
  return isPlainRead && !load.once && load.rate === undefined ? runAutocannon : drive;
}
