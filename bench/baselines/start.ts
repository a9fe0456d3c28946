import { join } from "node:path";
import type { BenchContext, Instance } from "../context.js";
import { type Keys, privateApplication, seededApplications } from "../seed.js";
import { addressOf, type Server, startBaseline } from "../servers.js";
import { keyAt } from "./by-hand/service.js";

export type ServerName = "bare" | "byHand" | "byHandOnMongo" | "embedded" | "mongo";

/** A baseline server or Latchkey, with the keys of its requests. */
export interface ServerUnderTest {
  readonly label: string;
  readonly server: Server;
  readonly keys: Keys;
}

export type ServersUnderTest = Readonly<Partial<Record<ServerName, ServerUnderTest>>>;

/** Starts the baselines. */
export async function startServersUnderTest(context: BenchContext): Promise<ServersUnderTest> {
  const { embedded, mongo } = context;
  return {
    bare: await startBareHttp(context),
    byHand: await startByHand(context),
    embedded: toServerUnderTest(embedded),
    ...(mongo && {
      mongo: toServerUnderTest(mongo),
      byHandOnMongo: await startByHandOnMongo(context, mongo),
    }),
  };
}

const firstData = { APPLICATION: privateApplication, APPLICATIONS: String(seededApplications) };

/** Starts the service by hand on lmdb. */
export async function startByHand({ folder, cores }: BenchContext): Promise<ServerUnderTest> {
  const settings = { ...firstData, DATA_DIR: join(folder, "by-hand") };
  const server = await startBaseline("by-hand/lmdb", settings, cores.server);
  return { label: "by hand: node:http + lmdb", server, keys: keysByHand };
}

async function startByHandOnMongo(
  { cores }: BenchContext,
  { store }: Instance,
): Promise<ServerUnderTest> {
  const settings = { ...firstData, ...store, MONGODB_DATABASE: "by-hand" };
  const server = await startBaseline("by-hand/mongo", settings, cores.server);
  return { label: "by hand: node:http + MongoDB", server, keys: keysByHand };
}

const keysByHand: Keys = {
  management: keyAt(0).key,
  public: keyAt(1).key,
  checking: keyAt(2).key,
  private: Array.from({ length: seededApplications }, (_, index) => keyAt(index + 3)),
};

/** Starts the lower bound for requests over HTTP/1.1. */
export async function startBareHttp({ embedded, cores }: BenchContext): Promise<ServerUnderTest> {
  const settings = { BODY: await fetchApplication(embedded) };
  const server = await startBaseline("bare-http", settings, cores.server);
  return { label: "bare node:http", server, keys: embedded.keys };
}

async function fetchApplication({ server, keys }: Instance): Promise<string> {
  const key = keys.private[0]?.key ?? "";
  const response = await fetch(`${addressOf(server)}/applications/key`, {
    headers: { "svc-api-key": key },
  });
  if (!response.ok) {
    throw new Error(`GET /applications/key returned ${response.status}`);
  }
  return response.text();
}

function toServerUnderTest({ name, server, keys }: Instance): ServerUnderTest {
  return { label: `Latchkey, ${name}`, server, keys };
}
