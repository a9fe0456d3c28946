import { setTimeout as delay } from "node:timers/promises";
import { MongoClient } from "mongodb";
import { uri } from "../../support/mongo/uri.js";

/**
 * An estimate of the database's clock: the earliest and the latest possible
 * reading at a time of `performance.now()`. Default: now.
 */
export interface DatabaseClock {
  earliest(at?: number): number;
  latest(at?: number): number;
  /** Compares the clocks again, in case one was set or has drifted. */
  compare(): Promise<void>;
}

/** The least and greatest possible lead of the database's clock over `performance.now()`. */
interface Offset {
  readonly least: number;
  readonly most: number;
}

const attempts = 10;

/** Each reading happened between request and response, truncated to a millisecond. Several readings narrow the range. */
async function measure(): Promise<Offset> {
  const client = await new MongoClient(uri).connect();
  try {
    let least = Number.NEGATIVE_INFINITY;
    let most = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const sent = performance.now();
      const { localTime } = await client.db("admin").command({ hello: 1 });
      const received = performance.now();
      least = Math.max(least, localTime.getTime() - received);
      most = Math.min(most, localTime.getTime() + 1 - sent);
    }
    return { least: Math.min(least, most), most: Math.max(least, most) };
  } finally {
    await client.close();
  }
}

export async function readDatabaseClock(): Promise<DatabaseClock> {
  let { least, most } = await measure();
  return {
    earliest: (at = performance.now()) => at + least,
    latest: (at = performance.now()) => at + most,

    async compare() {
      const again = await measure();
      least = Math.min(least, again.least);
      most = Math.max(most, again.most);
    },
  };
}

/** Whether a key was accepted, with the times of request and response by `performance.now()`. */
export interface KeySample {
  readonly isAccepted: boolean;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** The interval of the requests in milliseconds, and their number after the expiry of the key. */
const interval = 30;
const samplesAfterExpiry = 10;

/** Uses a key repeatedly, until some time after its expiry. */
export async function sampleKey(
  expiresAt: number,
  clock: DatabaseClock,
  use: () => Promise<boolean>,
): Promise<readonly KeySample[]> {
  const samples: KeySample[] = [];
  for (let countAfter = 0; countAfter < samplesAfterExpiry; ) {
    const sentAt = performance.now();
    const isAccepted = await use();
    samples.push({ isAccepted, sentAt, receivedAt: performance.now() });
    countAfter += clock.earliest(sentAt) > expiresAt ? 1 : 0;
    await delay(interval * (0.5 + Math.random()));
  }
  return samples;
}

/** Returns the samples in which the key was accepted after its expiry, or refused before it. */
export function findWrongSamples(
  samples: readonly KeySample[],
  expiresAt: number,
  clock: DatabaseClock,
): readonly KeySample[] {
  return samples.filter(({ isAccepted, sentAt, receivedAt }) =>
    isAccepted ? clock.earliest(sentAt) > expiresAt : clock.latest(receivedAt) < expiresAt,
  );
}
