import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { seedTenant, type Tenant } from "../contract/api/fixtures.js";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { type FailingMongo, startFailingMongo } from "../support/mongo/failing-mongo.js";
import { useMongo } from "../support/mongo/mongo.js";
import { uri } from "../support/mongo/uri.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../support/service/server.js";

const hour = 3_600_000;
const started: TestServer[] = [];

afterAll(() => Promise.all(started.map((server) => server.close())));

/** Starts an instance with shared rate limits. */
async function start(store: TestServer["store"], limits: Record<string, string>) {
  const environment = {
    MONGODB_URI: uri,
    RATE_LIMIT_SCOPE: "shared",
    TRUSTED_PROXIES: "127.0.0.1",
    ...limits,
  };
  const server = await startServer("mongo", { environment, store });
  started.push(server);
  return server;
}

async function whoAmI(server: TestServer, key: string, address = "203.0.113.1"): Promise<number> {
  const { status, headers } = await send(server, "/whoami", {
    headers: { "svc-api-key": key, "x-forwarded-for": address },
  });
  if (status === 429) {
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  }
  return status;
}

/** Whether a log line reports the loss or return of shared rate limits. */
const isAboutSharedLimits = ({ msg }: Record<string, unknown>) =>
  /^shared rate limits /.test(String(msg));

describe("token buckets in MongoDB", () => {
  const mongo = useMongo();

  it("give the tokens they hold and return the wait for the next", async () => {
    // Far in the future, so that MongoDB's TTL does not remove a bucket in use.
    let now = Date.UTC(2100, 0);
    const { rateCounts } = await mongo.open(mongo.createDatabase(), { clock: () => now });
    const rate = { count: 10, interval: 1_000, burst: 5 };
    const draw = (maximum: number) => rateCounts?.draw("a", rate, maximum);
    expect(await draw(3)).toMatchObject({ tokens: 3 });
    expect(await draw(3)).toMatchObject({ tokens: 2 });
    expect(await draw(3)).toEqual({ tokens: 0, wait: 100 });
    now += 40;
    expect(await draw(3)).toEqual({ tokens: 0, wait: 60 });
    now += 60;
    expect(await draw(3)).toMatchObject({ tokens: 1 });
    now -= 500;
    expect(await draw(3)).toEqual({ tokens: 0, wait: 100 });
    now += hour;
    expect(await draw(9)).toMatchObject({ tokens: 5 });
  });

  it("give all requested tokens or none, and return the wait", async () => {
    const now = Date.UTC(2100, 0);
    const { rateCounts } = await mongo.open(mongo.createDatabase(), { clock: () => now });
    const rate = { count: 10, interval: 1_000, burst: 5 };
    const draw = (count: number) => rateCounts?.draw("many", rate, count, count);
    expect(await draw(3)).toMatchObject({ tokens: 3 });
    expect(await draw(3)).toEqual({ tokens: 0, wait: 100 });
    expect(await draw(2)).toMatchObject({ tokens: 2 });
    expect(await draw(3)).toEqual({ tokens: 0, wait: 300 });
  });

  it("give no token twice under concurrent draws and clock skew", async () => {
    const db = mongo.createDatabase();
    const stores = [await mongo.open(db), await mongo.open(db)];
    const rate = { count: 1, interval: hour, burst: 50 };
    const now = Date.now();

    const drawConcurrently = (bucket: string) =>
      Array.from({ length: 100 }, (_, i) => {
        clock.mockReturnValue(i % 2 === 0 ? now + hour : now - hour);
        return stores[i % 2]?.rateCounts?.draw(bucket, rate, 3);
      });

    const clock = jest.spyOn(Date, "now");
    try {
      // On a busy machine a draw may time out after 500 ms: retry with a new bucket.
      for (let attempt = 0; ; attempt++) {
        const draws = await Promise.allSettled(drawConcurrently(`b${attempt}`));
        const tokens = draws.map((draw) =>
          draw.status === "fulfilled" ? (draw.value?.tokens ?? 0) : 0,
        );
        const drawn = tokens.reduce((sum, count) => sum + count, 0);
        expect(drawn).toBeLessThanOrEqual(50);
        if (draws.every(({ status }) => status === "fulfilled")) {
          expect(drawn).toBe(50);
          return;
        }
      }
    } finally {
      clock.mockRestore();
    }
  });

  it("are deleted when full again", async () => {
    const db = mongo.createDatabase();
    const store = await mongo.open(db);
    await store.rateCounts?.draw("c", { count: 2, interval: 1_000, burst: 10 }, 1);
    const [document] = await db.collection("rate_counts").find().toArray();
    expect(document?.expires_at - document?.at).toBe(5_000);
    const [, index] = await db.collection("rate_counts").indexes();
    expect(index).toMatchObject({ key: { expires_at: 1 }, expireAfterSeconds: 0 });
  });
});

describe("two instances with shared rate limits", () => {
  const mongo = useMongo();
  const limits = { RATE_LIMIT_PRIVATE: "1/h:10", RATE_LIMIT_FAILURES: "1/h:6" };
  let instances: TestServer[];
  let tenant: Tenant;

  beforeAll(async () => {
    const db = mongo.createDatabase();
    instances = [
      await start(await mongo.open(db), limits),
      await start(await mongo.open(db), limits),
    ];
    const [first] = instances as [TestServer, TestServer];
    tenant = await seedTenant(first, createRestApi(first.url));
  });

  /** Alternates between the instances and counts the status codes. */
  async function callAlternately(key: string, address: string, count: number) {
    const counts: Record<number, number> = {};
    for (let i = 0; i < count; i++) {
      const status = await whoAmI(instances[i % 2] as TestServer, key, address);
      counts[status] = (counts[status] ?? 0) + 1;
    }
    return counts;
  }

  /**
   * Retries until no instance lost the shared counts during the attempt: on a slow machine an
   * instance may wait for MongoDB for more than 500 ms and then counts locally.
   */
  async function retryUntilShared<T>(attempt: (index: number) => Promise<T>): Promise<T> {
    const lines = () => instances.map(({ logs }) => logs.filter(isAboutSharedLimits));
    for (let index = 1; ; index++) {
      const before = lines().flat().length;
      const result = await attempt(index);
      const isLost = lines().some((entries) => entries.at(-1)?.level === "warn");
      if (!isLost && lines().flat().length === before) {
        return result;
      }
    }
  }

  it("allow a key the same rate in total as one instance", async () => {
    const counts = await retryUntilShared(async () => {
      const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
      return callAlternately(key, "203.0.113.1", 16);
    });
    expect(counts).toEqual({ 200: 10, 429: 6 });
  });

  it("count the checks of batches together and refuse a batch above the remainder", async () => {
    const statuses = await retryUntilShared(async () => {
      const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
      const checkBatch = async (instance: number, size: number) => {
        const response = await send(instances[instance] as TestServer, "/access/check-batch", {
          method: "POST",
          headers: { "svc-api-key": key, "content-type": "application/json" },
          body: JSON.stringify({ checks: Array(size).fill({ key, permission: "access:check" }) }),
        });
        return response.status;
      };
      // The refused call still takes one token.
      return [
        await checkBatch(0, 4),
        await checkBatch(1, 4),
        await checkBatch(0, 3),
        await checkBatch(1, 1),
        await checkBatch(0, 1),
      ];
    });
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
  });

  it("describe the limit in a refusal only, because no instance knows what is left", async () => {
    const { allowed, refused } = await retryUntilShared(async () => {
      const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
      const call = () =>
        send(instances[0] as TestServer, "/whoami", { headers: { "svc-api-key": key } });
      const responses = [];
      for (let i = 0; i < 11; i++) {
        responses.push((await call()).headers);
      }
      return { allowed: responses.slice(0, 10), refused: responses[10] };
    });
    for (const headers of allowed) {
      expect(headers).not.toHaveProperty("ratelimit");
    }
    expect(refused).toMatchObject({ "ratelimit-policy": '"private";q=10;w=36000' });
    expect(refused?.ratelimit).toMatch(/^"private";r=0;t=3[56]\d\d$/);
  });

  it("allow as many invalid keys in total as one instance", async () => {
    const counts = await retryUntilShared((index) =>
      callAlternately("guess", `198.51.100.${index}`, 10),
    );
    expect(counts).toEqual({ 401: 6, 429: 4 });
    expect(await whoAmI(instances[0] as TestServer, tenant.root.key)).toBe(200);
  });
});

describe("an instance that loses the shared counts", () => {
  let mongo: FailingMongo;

  beforeAll(async () => {
    mongo = await startFailingMongo();
  });

  afterAll(async () => {
    await Promise.all(started.splice(0).map((server) => server.close()));
    await mongo.stop();
  });

  it.each<[failure: string, data: object]>([
    ["fails", { failCommands: ["findAndModify"], errorCode: 10107 }],
    [
      "does not respond",
      { failCommands: ["findAndModify"], blockConnection: true, blockTimeMS: 10_000 },
    ],
  ])("counts locally if MongoDB %s, and logs it once", async (_, data) => {
    const server = await start(mongo.store, { ...rateLimitsOff, RATE_LIMIT_PRIVATE: "1/h:3" });
    const { backend } = await seedTenant(server, createRestApi(server.url));
    await mongo.fail("alwaysOn", data);
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) {
      statuses.push(await whoAmI(server, backend.key));
    }
    await mongo.fail("off");
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
    expect(server.logs.filter(isAboutSharedLimits)).toMatchObject([
      { level: "warn", msg: expect.stringMatching(/^shared rate limits unavailable/) },
    ]);
  });
});
