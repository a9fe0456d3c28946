import {
  durationFromMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { Db } from "mongodb";
import { createKeyring } from "../../src/auth/keys.js";
import { type BootstrapResult, bootstrap } from "../../src/bootstrap.js";
import { createGuard } from "../../src/client/create-guard.js";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { useMongo } from "../support/mongo/mongo.js";
import { type DatabaseClock, readDatabaseClock } from "./support/database-clock.js";
import { insist } from "./support/insist.js";
import { type Observation, observe, wrongOnes } from "./support/observed-key.js";
import { useShiftedInstances } from "./support/shifted-instances.js";

jest.setTimeout(300_000);

const sessionTtl = 4_000;
const minute = 60_000;
const sessionMaxTtl = minute;
/** For how long a key works that is given an end: first, and more where a busy machine did not see it work. */
const lifetime = 2_500;
/** How often a key is made and watched until it was seen on both sides of its end. */
const attempts = 6;

const mongo = useMongo();
let db: Db;
let root: BootstrapResult;
/** Of a backend, which authorizes sessions. */
let backend: string;
let clock: DatabaseClock;
let apis: readonly [ahead: Api, behind: Api];

beforeAll(async () => {
  db = mongo.createDatabase();
  const store = await mongo.open(db);
  root = await bootstrap({ store, keyring: createKeyring([""]) });
  clock = await readDatabaseClock();
});

const instances = useShiftedInstances(() => db.databaseName, {
  SESSION_TTL: `${sessionTtl}ms`,
  SESSION_MAX_TTL: `${sessionMaxTtl}ms`,
});

beforeAll(async () => {
  const [ahead, behind] = instances.map(({ url }) => createRestApi(url));
  apis = [ahead as Api, behind as Api];
  backend = keyOf(
    await apis[0].createApplication(root.key, {
      name: "backend",
      type: "private",
      permissions: permissions,
    }),
  );
});

const eachClock = [
  ["5 minutes ahead", 0],
  ["5 minutes behind", 1],
] as const;

const moment = (timestamp: Timestamp | undefined) => timestampMs(timestamp as Timestamp);
const fromNow = (milliseconds: number) => timestampFromMs(Math.ceil(clock.latest()) + milliseconds);
/** A moment that is past for certain. */
const justPast = () => timestampFromMs(Math.floor(clock.earliest()) - 1);
const permissions = ["token:read"];

function create(api: Api, type: string, expiresAt?: Timestamp) {
  return api.createApplication(root.key, {
    name: type,
    type,
    permissions: type === "public" ? ["token:create"] : permissions,
    ...(expiresAt && { expiresAt }),
  });
}

/** A key, and the moment at which it ends. */
interface Mortal {
  readonly key: string;
  readonly end: number;
}

async function endingApplication(api: Api, lifetime: number): Promise<Mortal> {
  const made = await create(api, "private", fromNow(lifetime));
  return { key: keyOf(made), end: moment(made.expiresAt) };
}

type Way = (api: Api, lifetime: number) => Promise<Mortal>;

/** The ways in which a key comes by its end. */
const ways: Readonly<Record<string, Way>> = {
  "of an application": endingApplication,

  async "that was replaced with a grace period"(api, lifetime) {
    const made = await create(api, "private");
    const begun = clock.earliest();
    await api.regenerateApplicationKey(root.key, {
      id: made.id,
      gracePeriod: durationFromMs(lifetime),
    });
    const { data } = await api.listApplicationKeys(root.key, { id: made.id });
    const end = moment(data[1]?.expiresAt);
    expectBetween(end - lifetime, begun, clock.latest());
    return { key: keyOf(made), end };
  },

  async "of a session"(api) {
    const owner = await create(api, "public");
    const begun = clock.earliest();
    const made = await api.createSession(keyOf(owner));
    expectBetween(moment(made.expiresAt) - sessionTtl, begun, clock.latest());
    return { key: made.sessionKey, end: moment(made.expiresAt) };
  },

  async "of a session that was authorized until then"(api, lifetime) {
    const owner = await create(api, "public");
    const { nonce, sessionKey } = await api.createSession(keyOf(owner));
    const expiresAt = fromNow(lifetime);
    await api.authorizeSession(backend, { nonce, permissions, expiresAt });
    return { key: sessionKey, end: moment(expiresAt) };
  },

  async "of a session whose application ends before it"(api, lifetime) {
    const owner = await create(api, "public", fromNow(lifetime));
    const { sessionKey } = await api.createSession(keyOf(owner));
    return { key: sessionKey, end: moment(owner.expiresAt) };
  },
};

/** Moments are cut to milliseconds. */
function expectBetween(value: number, from: number, to: number): void {
  expect(value).toBeGreaterThan(from - 1);
  expect(value).toBeLessThan(to + 1);
}

const opens = (api: Api, key: string) => () =>
  insist(() => api.whoAmI(key)).then(
    () => true,
    (error) => {
      expect(error).toMatchObject({ reason: "unauthenticated" });
      return false;
    },
  );

/** A key that was watched by several until after its end. */
interface Watched {
  readonly end: number;
  readonly seen: readonly (readonly Observation[])[];
}

/**
 * Makes keys and watches them in some ways, until one was seen on both sides of
 * its end in each: on a busy machine it may take longer to make a key than it
 * works.
 */
async function watchEnds(
  make: Way,
  api: Api,
  asksOf: (key: string) => readonly (() => Promise<boolean>)[],
): Promise<readonly Watched[]> {
  const all: Watched[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      const { key, end } = await make(api, attempt * lifetime);
      const asks = asksOf(key);
      const seen = await Promise.all(asks.map((ask) => observe(end, clock, ask)));
      all.push({ end, seen });
      const isWrong = seen.some((observations) => wrongOnes(observations, end, clock).length > 0);
      if (isWrong || seen.every((observations) => observations.some(({ works }) => works))) {
        return all;
      }
    } catch (error) {
      // What it is made from has ended meanwhile.
      if (!(error instanceof ApiFailure) || attempt === attempts) {
        throw error;
      }
    }
  }
  throw new Error("No key was seen to work before its end.");
}

/** Sees that a key was taken before its end, and never after, by whoever was asked. */
async function expectEnds(watched: readonly Watched[]): Promise<void> {
  await clock.compare();
  for (const { end, seen } of watched) {
    for (const observations of seen) {
      expect(wrongOnes(observations, end, clock)).toEqual([]);
      expect(observations.at(-1)?.works).toBe(false);
    }
  }
}

const bothInstances = (key: string) => apis.map((api) => opens(api, key));

describe.each(eachClock)("created by an instance whose clock is %s, the key", (_, at) => {
  const watched = new Map<string, Promise<readonly Watched[]>>();

  beforeAll(() => {
    for (const [way, make] of Object.entries(ways)) {
      const watching = watchEnds(make, apis[at], bothInstances);
      watching.catch(() => {});
      watched.set(way, watching);
    }
  });

  it.each(Object.keys(ways))(
    "%s works on every instance until its expiry by the database's clock, and no longer",
    async (way) => expectEnds((await watched.get(way)) as readonly Watched[]),
  );
});

describe.each(eachClock)("an instance whose clock is %s", (_, at) => {
  it("reports key expirations to a guard, which uses its cache until then and no longer", async () => {
    const guard = createGuard({ url: instances[at]?.url ?? "", key: root.key });
    await guard.ready();
    const sources = new Set<string>();
    const asksOf = (key: string) => [
      async () => {
        const { allowed, source } = await guard.check(key, "token:read");
        sources.add(source);
        return allowed;
      },
    ];
    await expectEnds(await watchEnds(endingApplication, apis[at], asksOf));
    expect(sources).toContain("cache");
    await guard.close();
  });

  it("accepts an expiry that is in the future by the database's clock", async () => {
    const api = apis[at];
    expect(await create(api, "private", fromNow(minute))).toBeDefined();
    const late = await create(api, "private", justPast()).catch((error) => error);
    expect(late).toBeInstanceOf(ApiFailure);
    expect(late.errors).toEqual({ expires_at: ["must be in the future"] });

    const owner = keyOf(await create(api, "public"));
    const authorize = async (end: () => Timestamp) => {
      const { nonce } = await api.createSession(owner);
      await api.authorizeSession(backend, { nonce, permissions, expiresAt: end() });
    };
    const invalid = { reason: "invalid_request" };
    await expect(authorize(justPast)).rejects.toMatchObject(invalid);
    await expect(authorize(() => fromNow(sessionMaxTtl + minute))).rejects.toMatchObject(invalid);
    await authorize(() => fromNow(sessionMaxTtl - 5_000));
  });

  it("repeats an idempotent response for a day by the database's clock, on every instance", async () => {
    const key = { key: root.key, headers: { "Idempotency-Key": `"answer-${at}"` } };
    const request = { name: "once", type: "private", permissions };
    const begun = clock.earliest();
    const first = await apis[at].createApplication(key, request);
    const again = await Promise.all(apis.map((api) => api.createApplication(key, request)));
    expect(again.map(({ id }) => id)).toEqual([first.id, first.id]);

    const answers = db.collection("answers");
    const [kept] = await answers.find().sort({ expires_at: -1 }).limit(1).toArray();
    expectBetween(kept?.expires_at.getTime() - 24 * 3_600_000, begun, clock.latest());
    await answers.updateMany({}, [{ $set: { expires_at: "$$NOW" } }]);
    const anew = await apis[at].createApplication(key, request);
    expect(anew.id).not.toBe(first.id);
  });

  it("records events that every instance finds by time", async () => {
    const since = justPast();
    const { id } = await create(apis[at], "private");
    for (const api of apis) {
      const { data } = await api.listEvents(root.key, { since, target: id });
      expect(data.map(({ kind }) => kind)).toEqual(["application.created"]);
      expectBetween(moment(data[0]?.at), moment(since), clock.latest());
    }
  });
});
