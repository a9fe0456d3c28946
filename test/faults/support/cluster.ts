import { keyOf } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { createRestApi } from "../../support/api/rest.js";
import { allOrUndo } from "../../support/concurrency.js";
import { type ReplicaSet, startReplicaSet } from "../../support/mongo/replica-set.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { bootstrapKey } from "../../support/service/service-process.js";
import { type Endpoint, retryWhileUnavailable } from "./call-recorder.js";
import { type Instance, startInstance } from "./instance.js";

/** Two instances of the service on a replica set of three members. */
export interface Cluster {
  readonly set: ReplicaSet;
  readonly instances: readonly [Instance, Instance];
  /** Each instance over REST. */
  readonly restEndpoints: readonly [Endpoint, Endpoint];
  /** Each instance over each protocol. */
  readonly endpoints: readonly Endpoint[];
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
  const starting = [start("first"), start("second")];
  running.push(...(await allOrUndo(starting, (instance) => instance.kill())));
  const root = await bootstrapping;
  const instances = running as [Instance, Instance];
  const endpoints = endpointsOf(instances);
  const restEndpoints = endpoints.filter(({ protocol }) => protocol === "REST") as [
    Endpoint,
    Endpoint,
  ];
  const createKey = async (type: string, permissions: string[]) =>
    keyOf(
      await retryWhileUnavailable(() =>
        restEndpoints[0].api.createApplication(root, { name: type, type, permissions }),
      ),
    );
  const opener = await createKey("public", ["token:read"]);
  const granter = await createKey("private", ["application:read"]);
  return {
    set,
    instances,
    restEndpoints,
    endpoints,
    keys: { root, opener, granter },
    async stop() {
      for (const { api } of endpoints) {
        api.close();
      }
      await Promise.all(instances.map((instance) => instance.kill()));
      await set.stop();
    },
  };
}

/** Each instance over each protocol. */
export const endpointsOf = (instances: readonly Instance[]): Endpoint[] => [
  ...instances.map(({ name, url }) => ({
    instance: name,
    protocol: "REST",
    api: createRestApi(url),
  })),
  ...instances.map(({ name, url }) => ({
    instance: name,
    protocol: "gRPC",
    api: createGrpcApi(new URL(url).host),
  })),
];
