import { type Api, keyOf } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { until } from "../../support/until.js";
import { retryWhileUnavailable, unavailable } from "./call-recorder.js";
import { openCheckStream, watchChanges } from "./client-streams.js";
import type { Cluster } from "./cluster.js";
import type { PartitionedCluster } from "./partitioned-cluster.js";

/** An authorized session of its own application. */
interface OpenSession {
  readonly id: string;
  readonly key: string;
  readonly applicationId: string;
  /** An application of its own that authorized the session. */
  readonly authorizerId: string;
}

const ofAuthorizer = "revoke all sessions of the authorizer";

/** The methods that revoke a session. */
export const sessionRevocations: Readonly<
  Record<string, (api: Api, root: string, session: OpenSession) => Promise<unknown>>
> = {
  "delete the session": (api, root, { id }) => api.deleteSession(root, { id }),
  "revoke all sessions": (api, root, { applicationId: id }) => api.revokeAllSessions(root, { id }),
  [ofAuthorizer]: (api, root, { authorizerId: id }) => api.revokeAllSessions(root, { id }),
  "delete the application": (api, root, { applicationId: id }) =>
    api.deleteApplication(root, { id }),
  "disable the application": (api, root, { applicationId: id }) =>
    api.disableApplication(root, { id }),
};

const permission = "application:read";

async function openSession(api: Api, { root }: Cluster["keys"]): Promise<OpenSession> {
  const permissions = [permission];
  const create = (type: string) =>
    retryWhileUnavailable(() => api.createApplication(root, { name: "page", type, permissions }));
  const page = await create("public");
  const authorizer = await create("private");
  const session = await retryWhileUnavailable(() => api.createSession(keyOf(page)));
  const { id, sessionKey: key, nonce } = session;
  await retryWhileUnavailable(() =>
    api.authorizeSession(keyOf(authorizer), { nonce, permissions }).catch((error) => {
      // An earlier call without a response has used the nonce.
      if (error.reason !== "nonce_used") {
        throw error;
      }
    }),
  );
  return { id, key, applicationId: page.id, authorizerId: authorizer.id };
}

type CheckResults = readonly (boolean | string)[];

/** The effects of sessions revoked on one instance while another was connected to a former primary. */
export interface RevocationResults {
  /** Whether the former primary still regarded itself as primary after all were revoked. */
  readonly isStillPrimary: boolean;
  /** The results of calls with the session keys on the stale instance, after all were revoked. */
  readonly staleCalls: readonly string[];
  /** The results on access check streams: of both instances before, and of each after all were revoked. */
  readonly checks: Readonly<
    Record<"before", readonly CheckResults[]> & Record<"stale" | "current", CheckResults>
  >;
  /** The revocation methods that watch streams delivered, and those that were missing from a complete range. */
  readonly watches: Readonly<
    Record<"deliveredByCurrent" | "deliveredByStale" | "missing", readonly string[]>
  >;
  /** Errors that ended watch streams, other than an unavailable store. */
  readonly unexpectedErrors: readonly string[];
}

export async function revokeDuringPartition(
  cluster: PartitionedCluster,
): Promise<RevocationResults> {
  const { keys, current, instances, set } = cluster;
  const { root } = keys;
  const methods = Object.entries(sessionRevocations);
  await cluster.untilHealthy();
  const sessions = await Promise.all(methods.map(() => openSession(current.api, keys)));
  const sessionKeys = sessions.map(({ key }) => key);
  const apis = instances.map(({ url }) => createGrpcApi(new URL(url).host));
  const [staleChecks, currentChecks] = asPair(apis.map((api) => openCheckStream(api, root)));
  const [staleWatch, currentWatch] = asPair(apis.map((api) => watchChanges(api, root)));
  const check = (stream: typeof staleChecks) => stream.check(sessionKeys, permission);
  /** The application that the change stream names. */
  const changedId = (at: number) => {
    const { applicationId = "", authorizerId = "" } = sessions[at] ?? {};
    return methods[at]?.[0] === ofAuthorizer ? authorizerId : applicationId;
  };
  const getDelivered = ({ hasDelivered }: typeof staleWatch) =>
    methods.filter((_, at) => hasDelivered(changedId(at))).map(([method]) => method);
  const untilAllDelivered = (watch: typeof staleWatch) =>
    until(async () => getDelivered(watch).length === methods.length).catch(() => undefined);

  try {
    const before = [await check(staleChecks), await check(currentChecks)];
    await until(async () => staleWatch.messages() * currentWatch.messages() > 0);
    const former = await cluster.partition();
    const revokedAt = await Promise.all(
      methods.map(async ([, revoke], at) => {
        const session = sessions[at] as (typeof sessions)[number];
        await cluster.untilDone(current, (api) => revoke(api, root, session));
        return performance.now();
      }),
    );
    const { isWritablePrimary: isStillPrimary } = await former.command({ hello: 1 });
    const [staleCalls, staleResults, currentResults] = await Promise.all([
      callStaleInstance(cluster, sessionKeys),
      check(staleChecks),
      check(currentChecks),
      untilAllDelivered(currentWatch),
    ]);
    const deliveredByCurrent = getDelivered(currentWatch);
    await set.heal();
    await untilAllDelivered(staleWatch);
    const errors = [...staleWatch.errors, ...currentWatch.errors];
    const isMissing = (at: number) =>
      [staleWatch, currentWatch].some(({ hasMissed }) =>
        hasMissed(changedId(at), revokedAt[at] ?? 0),
      );
    return {
      isStillPrimary,
      staleCalls,
      checks: { before, stale: staleResults, current: currentResults },
      watches: {
        deliveredByCurrent,
        deliveredByStale: getDelivered(staleWatch),
        missing: methods.filter((_, at) => isMissing(at)).map(([method]) => method),
      },
      unexpectedErrors: errors.filter((error) => !unavailable.includes(error)),
    };
  } finally {
    await Promise.all([staleWatch.stop(), currentWatch.stop()]);
    for (const client of [staleChecks, currentChecks, ...apis]) {
      client.close();
    }
  }
}

const asPair = <T>(items: readonly T[]) => items as readonly [T, T];

/** Uses and checks each key on the stale instance. */
async function callStaleInstance(
  { recorder, stale, keys }: PartitionedCluster,
  sessionKeys: readonly string[],
): Promise<string[]> {
  const calls = sessionKeys.flatMap((key) => [
    recorder.call(stale, "", (api) => api.whoAmI(key)),
    recorder.call(stale, "", (api) => api.checkAccess(keys.root, { key, permission })),
  ]);
  return (await Promise.all(calls)).map(({ result }) => result);
}
