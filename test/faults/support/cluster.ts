import { keyOf } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { createRestApi } from "../../support/api/rest.js";
import { allOrUndo } from "../../support/concurrency.js";
import { type ReplicaSet, startReplicaSet } from "../../support/mongo/replica-set.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { insist } from "./insist.js";
import { bootstrapKey, type Instance, startInstance } from "./instance.js";
import type { Door } from "./tally.js";

/** Two instances of the service on a replica set of three members. */
export interface Cluster {
  readonly set: ReplicaSet;
  readonly instances: readonly [Instance, Instance];
  /** Each instance over REST. */
  readonly restDoors: readonly [Door, Door];
  /** Each instance over each protocol. */
  readonly doors: readonly Door[];
  readonly keys: ClusterKeys;
  stop(): Promise<void>;
}

export interface ClusterKeys {
  /** Has all permissions. */
  readonly root: string;
  /** Opens sessions. */
  readonly opener: string;
  /** Authorizes them. */
  readonly granter: string;
}

export async function startCluster(electionTimeout?: number): Promise<Cluster> {
  const set = await startReplicaSet(electionTimeout);
  const running: Instance[] = [];
  try {
    return await startOn(set, running);
  } catch (error) {
    await Promise.all(running.map((instance) => instance.kill()));
    await set.stop();
    throw error;
  }
}

/** Tracks running instances, so that they can be stopped if a later step fails. */
async function startOn(set: ReplicaSet, running: Instance[]): Promise<Cluster> {
  const bootstrapping = bootstrapKey({ MONGODB_URI: set.uriFor("bootstrap") });
  bootstrapping.catch(() => {});
  const start = (name: string) =>
    startInstance(name, { ...rateLimitsOff, MONGODB_URI: set.uriFor(name), SESSION_TTL: "1h" });
  const begun = [start("one"), start("other")];
  running.push(...(await allOrUndo(begun, (instance) => instance.kill())));
  const root = await bootstrapping;
  const instances = running as [Instance, Instance];
  const [one, other] = instances;
  const rest = ({ name, url }: Instance): Door => ({
    instance: name,
    protocol: "REST",
    api: createRestApi(url),
  });
  const grpc = ({ name, url }: Instance): Door => ({
    instance: name,
    protocol: "gRPC",
    api: createGrpcApi(new URL(url).host),
  });
  const restDoors = [rest(one), rest(other)] as const;
  const doors = [...restDoors, grpc(one), grpc(other)];
  const make = async (type: string, permissions: string[]) =>
    keyOf(
      await insist(() =>
        restDoors[0].api.createApplication(root, { name: type, type, permissions }),
      ),
    );
  const opener = await make("public", ["token:read"]);
  const granter = await make("private", ["application:read"]);
  return {
    set,
    instances,
    restDoors,
    doors,
    keys: { root, opener, granter },
    async stop() {
      for (const { api } of doors) {
        api.close();
      }
      await Promise.all(instances.map((instance) => instance.kill()));
      await set.stop();
    },
  };
}
