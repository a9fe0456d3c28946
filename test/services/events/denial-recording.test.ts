import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import pino from "pino";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { createKeyring, generateKey } from "../../../src/auth/keys.js";
import type { Call } from "../../../src/call.js";
import { invalidSignature, permissionDenied, unauthenticated } from "../../../src/errors.js";
import { Cancellation } from "../../../src/lib/cancellation.js";
import { newId } from "../../../src/lib/uuid.js";
import { createDenials, type Denials, maxPending } from "../../../src/services/events/denials.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";

const keyHeader = "SVC-API-KEY";
const minute = 60_000;
const application = { id: newId(1), tenantId: newId(2), type: "private" } as ApplicationRecord;

let denials: Denials;
let written: NewEvent[];
let lookups: string[];
let lines: Record<string, unknown>[];
let isFailing: boolean;

beforeEach(() => {
  jest.useFakeTimers();
  [written, lookups, lines, isFailing] = [[], [], [], false];
  const store = {
    applications: {
      find(id: string) {
        lookups.push(id);
        return id === application.id ? { ...application, keys: [] } : undefined;
      },
      findExpired: () => undefined,
    },
    events: {
      async add(events: readonly NewEvent[]) {
        if (isFailing) {
          throw new Error("store failure");
        }
        written.push(...events);
      },
    },
  };
  denials = createDenials({
    store: store as never,
    keyring: createKeyring(),
    addressOf: () => "192.0.2.1",
    readKey: ({ header }) => header.get(keyHeader) ?? "",
    log: pino({}, { write: (line) => lines.push(JSON.parse(line)) }),
  });
});

afterEach(() => {
  jest.useRealTimers();
});

function createCall(key = ""): Call {
  return {
    method: ApplicationService.method.getApplication,
    protocol: "rest",
    requestMethod: "GET",
    header: new Headers({ [keyHeader]: key }),
    isRepeated: () => false,
    requestId: randomUUID(),
    startedAt: 0,
    peer: { address: "", headers: {} },
    cancellation: new Cancellation(),
    countResponseFor: () => {},
    onCounted: () => {},
  };
}

const deny = () => denials.record(createCall(), { application }, permissionDenied("No."));
const refuseKey = (key: string) =>
  denials.record(createCall(key), undefined, unauthenticated({ keyHeader }));
const sumCounts = (events: readonly NewEvent[]) =>
  events.reduce((sum, { count = 1 }) => sum + count, 0);
const warnings = () => lines.filter(({ level }) => level === 40);

describe("denial recording", () => {
  it("makes no lookup and no write before the response", async () => {
    deny();
    refuseKey(generateKey("prv", application.id));
    expect([written, lookups]).toEqual([[], []]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(written.map(({ reason }) => reason)).toEqual(["permission_denied", "unknown_key"]);
    expect(lookups).toEqual([application.id]);
  });

  it("ignores an invalid signature: the key in the header is not used", async () => {
    denials.record(createCall(generateKey("prv", application.id)), undefined, invalidSignature());
    await denials.close();
    expect([written, lookups]).toEqual([[], []]);
  });

  it("writes one event every few seconds under a steady load, with the full count", async () => {
    for (let second = 0; second < 600; second++) {
      deny();
      deny();
      await jest.advanceTimersByTimeAsync(1_000);
    }
    expect(written.length).toBeLessThanOrEqual(600 / 5 + 1);
    await denials.close();
    expect(sumCounts(written)).toBe(1_200);
  });

  it("logs a store failure and retries the write", async () => {
    isFailing = true;
    deny();
    await jest.advanceTimersByTimeAsync(1_000);
    deny();
    await jest.advanceTimersByTimeAsync(minute);
    expect(written).toEqual([]);
    expect(warnings()).toContainEqual(
      expect.objectContaining({ err: expect.objectContaining({ message: "store failure" }) }),
    );
    isFailing = false;
    deny();
    await jest.advanceTimersByTimeAsync(minute);
    expect(sumCounts(written)).toBe(3);
  });

  it("bounds the lookups of unknown keys and logs how many were dropped", async () => {
    for (let index = 0; index < maxPending + 100; index++) {
      refuseKey(generateKey("prv", newId(index)));
    }
    await jest.advanceTimersByTimeAsync(1_000);
    while (lookups.length < maxPending) {
      await jest.advanceTimersByTimeAsync(1);
    }
    await jest.advanceTimersByTimeAsync(1);
    expect(lookups).toHaveLength(maxPending);
    expect(warnings()).toMatchObject([{ dropped: 100 }]);
    expect(written).toEqual([]);
  });

  it("makes one lookup for many keys of the same id and counts them all", async () => {
    for (let index = 0; index < 5_000; index++) {
      refuseKey(generateKey("prv", application.id));
    }
    await jest.advanceTimersByTimeAsync(1_000);
    expect(lookups).toEqual([application.id]);
    expect(sumCounts(written)).toBe(5_000);
    expect(warnings()).toEqual([]);
  });

  it("writes no key to events or the log", async () => {
    const keys = [generateKey("prv", application.id), generateKey("prv", application.id)];
    keys.forEach(refuseKey);
    isFailing = true;
    await jest.advanceTimersByTimeAsync(1_000);
    isFailing = false;
    await denials.close();
    expect(sumCounts(written)).toBe(2);
    expect(JSON.stringify([written, lines])).not.toContain("lk_");
  });

  it("writes all pending denials when it closes", async () => {
    deny();
    await jest.advanceTimersByTimeAsync(1_000);
    deny();
    refuseKey(generateKey("prv", application.id));
    await denials.close();
    expect(sumCounts(written)).toBe(3);
  });
});
