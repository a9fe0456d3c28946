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
import { retryWhileUnavailable } from "./support/call-recorder.js";
import {
  type DatabaseClock,
  findWrongSamples,
  type KeySample,
  readDatabaseClock,
  sampleKey,
} from "./support/key-sampling.js";
import { useSkewedInstances } from "./support/skewed-instances.js";

jest.setTimeout(300_000);

const sessionTtl = 4_000;
const minute = 60_000;
const sessionMaxTtl = minute;
/** The lifetime of a key in the first attempt. Each further attempt adds as much, for busy machines. */
const lifetime = 2_500;
/** How often a key is created until it was sampled both before and after its expiry. */
const maxAttempts = 6;

const mongo = useMongo();
let db: Db;
let root: BootstrapResult;
/** The key of a backend, which authorizes sessions. */
let backend: string;
let clock: DatabaseClock;
let apis: readonly [ahead: Api, behind: Api];

beforeAll(async () => {
  db = mongo.createDatabase();
  const store = await mongo.open(db);
  root = await bootstrap({ store, keyring: createKeyring([""]) });
  clock = await readDatabaseClock();
});

const instances = useSkewedInstances(() => db.databaseName, {
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

const toMs = (timestamp: Timestamp | undefined) => timestampMs(timestamp as Timestamp);
const fromNow = (milliseconds: number) => timestampFromMs(Math.ceil(clock.latest()) + milliseconds);
/** A time that is certainly in the past. */
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

/** Its expiry is in milliseconds by the database's clock. */
interface ExpiringKey {
  readonly key: string;
  readonly expiresAt: number;
}

async function createExpiringApplication(api: Api, lifetime: number): Promise<ExpiringKey> {
  const application = await create(api, "private", fromNow(lifetime));
  return { key: keyOf(application), expiresAt: toMs(application.expiresAt) };
}

type CreateKey = (api: Api, lifetime: number) => Promise<ExpiringKey>;

const expiringKeys: Readonly<Record<string, CreateKey>> = {
  "of an application": createExpiringApplication,

  async "that was replaced with a grace period"(api, lifetime) {
    const application = await create(api, "private");
    const { id } = application;
    const startedAt = clock.earliest();
    await api.regenerateApplicationKey(root.key, {
      id,
      gracePeriod: durationFromMs(lifetime),
    });
    const { data } = await api.listApplicationKeys(root.key, { id });
    const expiresAt = toMs(data[1]?.expiresAt);
    expectBetween(expiresAt - lifetime, startedAt, clock.latest());
    return { key: keyOf(application), expiresAt };
  },

  async "of a session"(api) {
    const owner = await create(api, "public");
    const startedAt = clock.earliest();
    const session = await api.createSession(keyOf(owner));
    const expiresAt = toMs(session.expiresAt);
    expectBetween(expiresAt - sessionTtl, startedAt, clock.latest());
    return { key: session.sessionKey, expiresAt };
  },

  async "of a session that was authorized with an expiry"(api, lifetime) {
    const owner = await create(api, "public");
    const { nonce, sessionKey } = await api.createSession(keyOf(owner));
    const expiresAt = fromNow(lifetime);
    await api.authorizeSession(backend, { nonce, permissions, expiresAt });
    return { key: sessionKey, expiresAt: toMs(expiresAt) };
  },

  async "of a session whose application expires first"(api, lifetime) {
    const owner = await create(api, "public", fromNow(lifetime));
    const { sessionKey } = await api.createSession(keyOf(owner));
    return { key: sessionKey, expiresAt: toMs(owner.expiresAt) };
  },
};

/** Timestamps are truncated to milliseconds. */
function expectBetween(value: number, from: number, to: number): void {
  expect(value).toBeGreaterThan(from - 1);
  expect(value).toBeLessThan(to + 1);
}

const isAccepted = (api: Api, key: string) => () =>
  retryWhileUnavailable(() => api.whoAmI(key)).then(
    () => true,
    (error) => {
      expect(error).toMatchObject({ reason: "unauthenticated" });
      return false;
    },
  );

/** The samples of a key by each client, until after its expiry. */
interface SampledKey {
  readonly expiresAt: number;
  readonly samples: readonly (readonly KeySample[])[];
}

/**
 * Creates and samples keys until every client has sampled one both before and
 * after its expiry. On a busy machine a key may expire while it is created.
 */
async function sampleExpiry(
  createKey: CreateKey,
  api: Api,
  createClients: (key: string) => readonly (() => Promise<boolean>)[],
): Promise<readonly SampledKey[]> {
  const all: SampledKey[] = [];
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    try {
      const { key, expiresAt } = await createKey(api, attempt * lifetime);
      const clients = createClients(key);
      const samples = await Promise.all(clients.map((use) => sampleKey(expiresAt, clock, use)));
      all.push({ expiresAt, samples });
      const isWrong = samples.some((own) => findWrongSamples(own, expiresAt, clock).length > 0);
      if (isWrong || samples.every((own) => own.some(({ isAccepted }) => isAccepted))) {
        return all;
      }
    } catch (error) {
      // Its application or session has expired meanwhile.
      if (!(error instanceof ApiFailure) || attempt === maxAttempts) {
        throw error;
      }
    }
  }
  throw new Error("No key was accepted before its expiry.");
}

/** Expects that keys were accepted until their expiry, and never afterwards. */
async function expectExactExpiry(keys: readonly SampledKey[]): Promise<void> {
  await clock.compare();
  for (const { expiresAt, samples } of keys) {
    for (const own of samples) {
      expect(findWrongSamples(own, expiresAt, clock)).toEqual([]);
      expect(own.at(-1)?.isAccepted).toBe(false);
    }
  }
}

const bothInstances = (key: string) => apis.map((api) => isAccepted(api, key));

describe.each(eachClock)("keys created by an instance whose clock is %s", (_, at) => {
  const sampled = new Map<string, Promise<readonly SampledKey[]>>();

  beforeAll(() => {
    for (const [kind, createKey] of Object.entries(expiringKeys)) {
      const sampling = sampleExpiry(createKey, apis[at], bothInstances);
      sampling.catch(() => {});
      sampled.set(kind, sampling);
    }
  });

  it.each(Object.keys(expiringKeys))(
    "are accepted on every instance until they expire by the database's clock, and no longer: the key %s",
    async (kind) => expectExactExpiry((await sampled.get(kind)) as readonly SampledKey[]),
  );
});

describe.each(eachClock)("an instance whose clock is %s", (_, at) => {
  it("reports key expirations to a guard, which uses its cache until then and no longer", async () => {
    const guard = createGuard({ url: instances[at]?.url ?? "", key: root.key });
    await guard.ready();
    const sources = new Set<string>();
    const createClients = (key: string) => [
      async () => {
        const { allowed, source } = await guard.check(key, "token:read");
        sources.add(source);
        return allowed;
      },
    ];
    await expectExactExpiry(await sampleExpiry(createExpiringApplication, apis[at], createClients));
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
    const authorize = async (getExpiry: () => Timestamp) => {
      const { nonce } = await api.createSession(owner);
      await api.authorizeSession(backend, { nonce, permissions, expiresAt: getExpiry() });
    };
    const invalid = { reason: "invalid_request" };
    await expect(authorize(justPast)).rejects.toMatchObject(invalid);
    await expect(authorize(() => fromNow(sessionMaxTtl + minute))).rejects.toMatchObject(invalid);
    await authorize(() => fromNow(sessionMaxTtl - 5_000));
  });

  it("repeats an idempotent response for a day by the database's clock, on every instance", async () => {
    const key = { key: root.key, headers: { "Idempotency-Key": `"answer-${at}"` } };
    const request = { name: "once", type: "private", permissions };
    const startedAt = clock.earliest();
    const first = await apis[at].createApplication(key, request);
    const again = await Promise.all(apis.map((api) => api.createApplication(key, request)));
    expect(again.map(({ id }) => id)).toEqual([first.id, first.id]);

    const responses = db.collection("responses");
    const [latest] = await responses.find().sort({ expires_at: -1 }).limit(1).toArray();
    expectBetween(latest?.expires_at.getTime() - 24 * 3_600_000, startedAt, clock.latest());
    await responses.updateMany({}, [{ $set: { expires_at: "$$NOW" } }]);
    const repeated = await apis[at].createApplication(key, request);
    expect(repeated.id).not.toBe(first.id);
  });

  it("records events that every instance finds by time", async () => {
    const since = justPast();
    const { id } = await create(apis[at], "private");
    for (const api of apis) {
      const { data } = await api.listEvents(root.key, { since, target: id });
      expect(data.map(({ kind }) => kind)).toEqual(["application.created"]);
      expectBetween(toMs(data[0]?.at), toMs(since), clock.latest());
    }
  });
});
