import { randomUUID } from "node:crypto";
import { createContextValues, type UnaryRequest } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import pino from "pino";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Caller, callKey } from "../../../src/auth/caller.js";
import { createKeyring, makeKey } from "../../../src/auth/keys.js";
import { permissionDenied, unauthenticated } from "../../../src/errors.js";
import { Cancellation } from "../../../src/lib/cancellation.js";
import { newId } from "../../../src/lib/uuid.js";
import { createDenials, type Denials, maxPending } from "../../../src/services/events/denials.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";

const keyHeader = "SVC-API-KEY";
const minute = 60_000;
const application = { id: newId(1), tenantId: newId(2), type: "private" } as ApplicationRecord;

let denials: Denials;
let added: NewEvent[];
let found: string[];
let lines: Record<string, unknown>[];
let isBroken: boolean;

beforeEach(() => {
  jest.useFakeTimers();
  [added, found, lines, isBroken] = [[], [], [], false];
  const store = {
    applications: {
      find(id: string) {
        found.push(id);
        return id === application.id ? { ...application, keys: [] } : undefined;
      },
      findExpired: () => undefined,
    },
    events: {
      async add(events: readonly NewEvent[]) {
        if (isBroken) {
          throw new Error("it is broken");
        }
        added.push(...events);
      },
    },
  };
  denials = createDenials({
    store: store as never,
    keyring: createKeyring(),
    addressOf: () => "192.0.2.1",
    keyHeader,
    log: pino({}, { write: (line) => lines.push(JSON.parse(line)) }),
  });
});

afterEach(() => {
  jest.useRealTimers();
});

/** A call by a caller, or with a key. */
function aRequest(by: { caller?: Caller; key?: string }): UnaryRequest {
  const call = {
    requestId: randomUUID(),
    startedAt: 0,
    peer: { address: "", headers: {} },
    cancellation: new Cancellation(),
    protocol: "rest",
    caller: by.caller,
  } as const;
  return {
    method: ApplicationService.method.getApplication,
    header: new Headers({ [keyHeader]: by.key ?? "" }),
    contextValues: createContextValues().set(callKey, call),
  } as never;
}

const deny = () => denials.record(aRequest({ caller: { application } }), permissionDenied("No."));
const refuseKey = (key: string) => denials.record(aRequest({ key }), unauthenticated(keyHeader));
const countOf = (events: readonly NewEvent[]) =>
  events.reduce((sum, { count = 1 }) => sum + count, 0);
const warnings = () => lines.filter(({ level }) => level === 40);

describe("denied calls", () => {
  it("cause no lookup and no write before the response", async () => {
    deny();
    refuseKey(makeKey("prv", application.id));
    expect([added, found]).toEqual([[], []]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(added.map(({ reason }) => reason)).toEqual(["permission_denied", "unknown_key"]);
    expect(found).toEqual([application.id]);
  });

  it("in a steady flow write one event every few seconds with the full count", async () => {
    for (let second = 0; second < 600; second++) {
      deny();
      deny();
      await jest.advanceTimersByTimeAsync(1_000);
    }
    expect(added.length).toBeLessThanOrEqual(600 / 5 + 1);
    await denials.close();
    expect(countOf(added)).toBe(1_200);
  });

  it("are written later if the store fails, which is logged", async () => {
    isBroken = true;
    deny();
    await jest.advanceTimersByTimeAsync(1_000);
    deny();
    await jest.advanceTimersByTimeAsync(minute);
    expect(added).toEqual([]);
    expect(warnings()).toContainEqual(
      expect.objectContaining({ err: expect.objectContaining({ message: "it is broken" }) }),
    );
    isBroken = false;
    deny();
    await jest.advanceTimersByTimeAsync(minute);
    expect(countOf(added)).toBe(3);
  });

  it("with made-up keys cause a bounded number of lookups, and the rest is logged as a number", async () => {
    for (let at = 0; at < maxPending + 100; at++) {
      refuseKey(makeKey("prv", newId(at)));
    }
    await jest.advanceTimersByTimeAsync(1_000);
    while (found.length < maxPending) {
      await jest.advanceTimersByTimeAsync(1);
    }
    await jest.advanceTimersByTimeAsync(1);
    expect(found).toHaveLength(maxPending);
    expect(warnings()).toMatchObject([{ untold: 100 }]);
    expect(added).toEqual([]);
  });

  it("with many keys of the same id cause one lookup, and all are counted", async () => {
    for (let at = 0; at < 5_000; at++) {
      refuseKey(makeKey("prv", application.id));
    }
    await jest.advanceTimersByTimeAsync(1_000);
    expect(found).toEqual([application.id]);
    expect(countOf(added)).toBe(5_000);
    expect(warnings()).toEqual([]);
  });

  it("leave no key in events or log", async () => {
    const keys = [makeKey("prv", application.id), makeKey("prv", application.id)];
    keys.forEach(refuseKey);
    isBroken = true;
    await jest.advanceTimersByTimeAsync(1_000);
    isBroken = false;
    await denials.close();
    expect(countOf(added)).toBe(2);
    expect(JSON.stringify([added, lines])).not.toContain("lk_");
  });

  it("are all written when the server closes", async () => {
    deny();
    await jest.advanceTimersByTimeAsync(1_000);
    deny();
    refuseKey(makeKey("prv", application.id));
    await denials.close();
    expect(countOf(added)).toBe(3);
  });
});
