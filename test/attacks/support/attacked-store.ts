import { afterAll, expect } from "@jest/globals";
import { MongoClient } from "mongodb";
import { newId } from "../../../src/lib/uuid.js";
import { longTimeoutUri, uri } from "../../support/mongo/uri.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import type { Engine } from "../../support/service/server.js";
import { type AttackedService, noTimeouts, useAttackedService } from "./attacked-service.js";
import {
  type LegitimateClient,
  type OtherTenant,
  type OtherTenantReport,
  startOtherTenant,
} from "./legitimate-client.js";

/**
 * The maximum latency of a tenant that is not attacked, in milliseconds. Ten times the goals,
 * so that a busy machine does not fail a test.
 */
const maxCall = 10_000;
const maxRevocation = 20_000;

type Clients = Pick<LegitimateClient, "waitForResponses"> & Pick<OtherTenant, "waitForRounds">;

interface AttackedStore {
  readonly service: Omit<AttackedService, "runAttack">;
  /** Runs an attack, and also expects that another tenant can call and revoke without long delays. */
  runAttack<T>(attack: (clients: Clients) => Promise<T>, maxMemoryGrowth?: number): Promise<T>;
}

/** Starts a service without rate limits on one of the stores, for the tests of a block. */
export function useAttackedStore(engine: Engine): AttackedStore {
  const database = `latchkey-${newId(Date.now()).slice(-17)}`;
  const service = useAttackedService({
    ...noTimeouts,
    ...rateLimitsOff,
    ...(engine === "mongo" && { MONGODB_URI: longTimeoutUri, MONGODB_DATABASE: database }),
  });

  afterAll(async () => {
    if (engine === "mongo") {
      const client = await new MongoClient(uri).connect();
      await client.db(database).dropDatabase();
      await client.close();
    }
  });

  async function runBesideOtherTenant<T>(
    { waitForResponses }: LegitimateClient,
    attack: (clients: Clients) => Promise<T>,
  ): Promise<T> {
    const other = await startOtherTenant(service, await service.createTenant());
    const [outcome] = await Promise.allSettled([
      attack({ waitForResponses, waitForRounds: other.waitForRounds }),
    ]);
    const report = await other.stop();
    if (outcome.status === "rejected") {
      throw outcome.reason;
    }
    print(report);
    const { rounds, failures, call, revocation } = report;
    expect(failures).toEqual([]);
    expect(rounds).toBeGreaterThan(0);
    expect(call).toBeLessThan(maxCall);
    expect(revocation).toBeLessThan(maxRevocation);
    return outcome.value;
  }

  return {
    service,
    runAttack: (attack, maxMemoryGrowth) =>
      service.runAttack((client) => runBesideOtherTenant(client, attack), maxMemoryGrowth),
  };
}

function print({ rounds, call, revocation }: OtherTenantReport): void {
  const { currentTestName = "" } = expect.getState();
  process.stdout.write(
    `${currentTestName}: of ${rounds} rounds of another tenant, the slowest call took ` +
      `${call.toFixed(0)} ms, the slowest revocation ${revocation.toFixed(0)} ms\n`,
  );
}
