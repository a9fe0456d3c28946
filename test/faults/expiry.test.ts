import {
  durationFromMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "@jest/globals";
import type { Db } from "mongodb";
import { type Bootstrapped, bootstrap } from "../../src/bootstrap.js";
import { createGuard } from "../../src/client/create-guard.js";
import { createKeyring } from "../../src/keys.js";
import { type Api, ApiFailure, keyOf } from "../support/api.js";
import { createRestApi } from "../support/api-rest.js";
import { useMongo } from "../support/mongo.js";
import { type DatabaseClock, readDatabaseClock } from "./support/database-clock.js";
import { type Observation, observe, wrongOnes } from "./support/observed-key.js";
import { useShiftedInstances } from "./support/shifted-instances.js";

const sessionTtl = 3_000;
const minute = 60_000;
const sessionMaxTtl = minute;
/** For how long a key works that is given an end: the first, and those after it where that was too short. */
const lifetimes = [2_500, 5_000, 10_000];
/** How much of it must be left to see that a key works, however busy the machine is. */
const enough = 1_000;

const mongo = useMongo();
let db: Db;
let root: Bootstrapped;
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
const fromNow = (milliseconds: number) => timestampFromMs(Math.round(clock()) + milliseconds);
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

/** Makes a key that has some time left, and another that has more where it took too long to make. */
async function makeInTime(make: Way, api: Api): Promise<Mortal> {
  for (const lifetime of lifetimes) {
    const made = await make(api, lifetime);
    if (made.end - clock() > enough) {
      return made;
    }
  }
  throw new Error("To make a key took longer than it works.");
}

/** The ways in which a key comes by its end. */
const ways: Readonly<Record<string, Way>> = {
  "of an application": endingApplication,

  async "that was replaced with a grace period"(api, lifetime) {
    const made = await create(api, "private");
    const begun = clock();
    await api.regenerateApplicationKey(root.key, {
      id: made.id,
      gracePeriod: durationFromMs(lifetime),
    });
    const { data } = await api.listApplicationKeys(root.key, { id: made.id });
    const end = moment(data[1]?.expiresAt);
    expectBetween(end - lifetime, begun, clock());
    return { key: keyOf(made), end };
  },

  async "of a session"(api) {
    const owner = await create(api, "public");
    const begun = clock();
    const made = await api.createSession(keyOf(owner));
    expectBetween(moment(made.expiresAt) - sessionTtl, begun, clock());
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

/** Within what comparing clocks may be off by. */
function expectBetween(value: number, from: number, to: number): void {
  expect(value).toBeGreaterThan(from - 50);
  expect(value).toBeLessThan(to + 50);
}

const opens = (api: Api, key: string) => () =>
  api.whoAmI(key).then(
    () => true,
    (error) => {
      expect(error).toMatchObject({ reason: "unauthenticated" });
      return false;
    },
  );

/** Asks every instance about a key until it has ended. */
async function follow(made: Mortal): Promise<Followed> {
  const asks = apis.map((api) => opens(api, made.key));
  const seen = await Promise.all(asks.map((ask) => observe(made.end, clock, ask)));
  return { end: made.end, seen };
}

/** A key that was asked about in some ways until it had ended. */
interface Followed {
  readonly end: number;
  readonly seen: readonly (readonly Observation[])[];
}

/** Sees that whoever was asked took the key before its end, and nobody after. */
function expectEnd({ end, seen }: Followed): void {
  for (const observations of seen) {
    expect(wrongOnes(observations, end)).toEqual([]);
    expect(new Set(observations.map(({ works }) => works))).toEqual(new Set([true, false]));
  }
}

describe.each(eachClock)("made by an instance whose clock is %s, the key", (_, at) => {
  const followed = new Map<string, Promise<Followed>>();

  beforeAll(() => {
    for (const [way, make] of Object.entries(ways)) {
      const following = makeInTime(make, apis[at]).then(follow);
      following.catch(() => {});
      followed.set(way, following);
    }
  });

  it.each(Object.keys(ways))(
    "%s works until its end by the database's clock, and no longer, on every instance",
    async (way) => expectEnd((await followed.get(way)) as Followed),
  );
});

describe.each(eachClock)("an instance whose clock is %s", (_, at) => {
  it("tells a guard when keys end, which answers from its memory until then and no longer", async () => {
    const guard = createGuard({ url: instances[at]?.url ?? "", key: root.key });
    await guard.ready();
    const { key, end } = await makeInTime(endingApplication, apis[at]);
    const sources = new Set<string>();
    const isAllowed = async () => {
      const { allowed, source } = await guard.check(key, "token:read");
      sources.add(source);
      return allowed;
    };
    expectEnd({ end, seen: [await observe(end, clock, isAllowed)] });
    expect(sources).toContain("cache");
    await guard.close();
  });

  it("takes an end that is ahead by the database's clock alone", async () => {
    const api = apis[at];
    expect(await create(api, "private", fromNow(minute))).toBeDefined();
    const late = await create(api, "private", fromNow(-100)).catch((error) => error);
    expect(late).toBeInstanceOf(ApiFailure);
    expect(late.errors).toEqual({ expires_at: ["must be in the future"] });

    const owner = keyOf(await create(api, "public"));
    const authorize = async (milliseconds: number) => {
      const { nonce } = await api.createSession(owner);
      const expiresAt = fromNow(milliseconds);
      await api.authorizeSession(backend, { nonce, permissions, expiresAt });
    };
    await expect(authorize(-100)).rejects.toMatchObject({ reason: "invalid_request" });
    await expect(authorize(sessionMaxTtl + minute)).rejects.toMatchObject({
      reason: "invalid_request",
    });
    await authorize(sessionMaxTtl - 5_000);
  });

  it("gives an answer again for a day by the database's clock, whoever is asked", async () => {
    const key = { key: root.key, headers: { "Idempotency-Key": `"answer-${at}"` } };
    const request = { name: "once", type: "private", permissions };
    const begun = clock();
    const first = await apis[at].createApplication(key, request);
    const again = await Promise.all(apis.map((api) => api.createApplication(key, request)));
    expect(again.map(({ id }) => id)).toEqual([first.id, first.id]);

    const answers = db.collection("answers");
    const [kept] = await answers.find().sort({ expires_at: -1 }).limit(1).toArray();
    expectBetween(kept?.expires_at.getTime() - 24 * 3_600_000, begun, clock());
    await answers.updateMany({}, [{ $set: { expires_at: "$$NOW" } }]);
    const anew = await apis[at].createApplication(key, request);
    expect(anew.id).not.toBe(first.id);
  });

  it("records what happened where it is found by its moment, on every instance", async () => {
    const since = fromNow(0);
    const { id } = await create(apis[at], "private");
    for (const api of apis) {
      const { data } = await api.listEvents(root.key, { since, target: id });
      expect(data.map(({ kind }) => kind)).toEqual(["application.created"]);
      expectBetween(moment(data[0]?.at), moment(since), clock());
    }
  });
});
