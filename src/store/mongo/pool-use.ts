import type { MongoClient } from "mongodb";
import type { ConnectionUse } from "../store.js";

/** Watches, from when it has connected, how a client uses its connections. */
export function watchPool(client: MongoClient): () => ConnectionUse {
  let inUse = 0;
  let waiting = 0;
  client.on("connectionCheckOutStarted", () => {
    waiting++;
  });
  client.on("connectionCheckOutFailed", () => {
    waiting--;
  });
  client.on("connectionCheckedOut", () => {
    waiting--;
    inUse++;
  });
  client.on("connectionCheckedIn", () => {
    inUse--;
  });
  return () => ({ inUse, waiting });
}
