import { createGrpcApi } from "../../support/api/grpc.js";
import { until } from "../../support/until.js";
import { openCheckStream } from "./asked-stream.js";
import { openSession, sessionEnds, sessionPermission } from "./ending-sessions.js";
import type { MisledCluster } from "./misled-cluster.js";
import { unavailable } from "./tally.js";
import { followChanges } from "./told-changes.js";

/** Observations of sessions revoked on one instance while another was connected to a former primary. */
export interface SessionStory {
  /** Whether the former primary still regarded itself as primary after all were revoked. */
  readonly isDeluded: boolean;
  /** The outcomes of calls with their keys on the misled instance, after all were revoked. */
  readonly misledCalls: readonly string[];
  /** The responses on access check streams: of both instances before, and of each after all were revoked. */
  readonly checks: Readonly<
    Record<"before", readonly Answers[]> & Record<"misled" | "informed", Answers>
  >;
  /** The ways of ending of which those who watched were told, and of which they were told nothing though they were told that nothing is missing. */
  readonly watches: Readonly<
    Record<"toldByInformed" | "toldByMisledAtLast" | "misledAbout", readonly string[]>
  >;
  /** Why those who watched had to come back, where the reason was not that the store was away. */
  readonly strangeEnds: readonly string[];
}

type Answers = readonly (boolean | string)[];

export async function tellSessionStory(cluster: MisledCluster): Promise<SessionStory> {
  const { keys, informed, instances, set } = cluster;
  const { root } = keys;
  const ways = Object.entries(sessionEnds);
  await cluster.untilAllWell();
  const sessions = await Promise.all(ways.map(() => openSession(informed.api, keys)));
  const sessionKeys = sessions.map(({ key }) => key);
  const apis = instances.map(({ url }) => createGrpcApi(new URL(url).host));
  const [misledChecks, informedChecks] = pairOf(apis.map((api) => openCheckStream(api, root)));
  const [misledWatch, informedWatch] = pairOf(apis.map((api) => followChanges(api, root)));
  const ask = (stream: typeof misledChecks) => stream.ask(sessionKeys, sessionPermission);
  const waysKnownTo = ({ knows }: typeof misledWatch) =>
    ways.filter((_, at) => knows(sessions[at]?.applicationId ?? "")).map(([way]) => way);
  const untilAllKnownTo = (watch: typeof misledWatch) =>
    until(async () => waysKnownTo(watch).length === ways.length).catch(() => undefined);

  try {
    const before = [await ask(misledChecks), await ask(informedChecks)];
    await until(async () => misledWatch.messages() * informedWatch.messages() > 0);
    const past = await cluster.mislead();
    const endedAt = await Promise.all(
      ways.map(async ([, end], at) => {
        const session = sessions[at] as (typeof sessions)[number];
        await cluster.untilDone(informed, (api) => end(api, root, session));
        return performance.now();
      }),
    );
    const { isWritablePrimary: isDeluded } = await past.command({ hello: 1 });
    const [misledCalls, afterMisled, afterInformed] = await Promise.all([
      callWith(cluster, sessionKeys),
      ask(misledChecks),
      ask(informedChecks),
      untilAllKnownTo(informedWatch),
    ]);
    const toldByInformed = waysKnownTo(informedWatch);
    await set.heal();
    await untilAllKnownTo(misledWatch);
    const ends = [...misledWatch.ends, ...informedWatch.ends];
    const isMisled = (at: number) =>
      [misledWatch, informedWatch].some(({ wasMisled }) =>
        wasMisled(sessions[at]?.applicationId ?? "", endedAt[at] ?? 0),
      );
    return {
      ...{ isDeluded, misledCalls },
      checks: { before, misled: afterMisled, informed: afterInformed },
      watches: {
        ...{ toldByInformed, toldByMisledAtLast: waysKnownTo(misledWatch) },
        misledAbout: ways.filter((_, at) => isMisled(at)).map(([way]) => way),
      },
      strangeEnds: ends.filter((end) => !unavailable.includes(end)),
    };
  } finally {
    await Promise.all([misledWatch.stop(), informedWatch.stop()]);
    for (const one of [misledChecks, informedChecks, ...apis]) {
      one.close();
    }
  }
}

const pairOf = <T>(two: readonly T[]) => two as readonly [T, T];

/** Asks the misled with each key, and about it. */
async function callWith(cluster: MisledCluster, sessionKeys: readonly string[]): Promise<string[]> {
  const { tally, misled, keys } = cluster;
  const calls = sessionKeys.flatMap((key) => [
    tally.call(misled, "", (api) => api.whoAmI(key)),
    tally.call(misled, "", (api) =>
      api.checkAccess(keys.root, { key, permission: sessionPermission }),
    ),
  ]);
  return (await Promise.all(calls)).map(({ end }) => end);
}
