import { type MongoClient, ReadConcern, type TopologyDescription } from "mongodb";
import type { Reads } from "../reads.js";

/** The options of such a read, for as long as they hold: asked for with each. */
export type FreshRead = () => { readonly readConcern: ReadConcern };

const linearizable = { readConcern: new ReadConcern("linearizable") };
const majority = { readConcern: new ReadConcern("majority") };

/**
 * Tells how to read over a client, which has yet to connect. Where one member
 * is the whole set nobody can have replaced it, and a majority read says the
 * same; a linearizable one would wait there for the next sync of its journal.
 */
export function createFreshRead(client: MongoClient, reads: Reads): FreshRead {
  let isAlone = false;
  client.on("topologyDescriptionChanged", ({ newDescription }) => {
    isAlone = hasOneMember(newDescription);
  });
  return () => (reads === "majority" || isAlone ? majority : linearizable);
}

function hasOneMember({ servers }: TopologyDescription): boolean {
  const [server, ...others] = servers.values();
  return others.length === 0 && server?.type === "RSPrimary" && server.allHosts.length === 1;
}
