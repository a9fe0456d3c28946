import { create, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import type { AuthorizedCall } from "../../src/auth/caller.js";
import { createResponseBudget } from "../../src/lib/response-budget.js";
import { createReserveResponse } from "../../src/middleware/reserve-response.js";

const kib = 1024;
const { listApplications, listApplicationKeys, getApplication, deleteApplication } =
  ApplicationService.method;

/** The bytes that are reserved for a call, if any. */
async function reservedFor(
  method: DescMethod,
  fields: object = {},
  budget = createResponseBudget(64 * kib * kib, 1),
) {
  let reserved: number | undefined;
  const call = {
    call: {
      method,
      cancellation: { reason: undefined },
      reserveResponse: (_owner: string, bytes: number) => {
        reserved = bytes;
      },
    },
    caller: { application: { tenantId: "tenant" } },
  } as unknown as AuthorizedCall;
  const request = create(method.input, fields as MessageInitShape<typeof method.input>);
  await createReserveResponse(budget)(call, request);
  return reserved;
}

describe("the memory that is reserved for a response", () => {
  it.each([listApplications, SessionService.method.listSessions, EventService.method.listEvents])(
    "is that of a page for a list, or of its items if they are few",
    async (method) => {
      expect(await reservedFor(method)).toBe(kib * kib);
      expect(await reservedFor(method, { size: 100 })).toBe(kib * kib);
      expect(await reservedFor(method, { size: 3 })).toBe(3 * 256 * kib);
      expect(await reservedFor(method, { size: 1 })).toBe(256 * kib);
    },
  );

  it("is none before the size is known for short lists and single records", async () => {
    expect(await reservedFor(listApplicationKeys)).toBe(0);
    expect(await reservedFor(AccessService.method.listPermissions)).toBe(0);
    expect(await reservedFor(getApplication)).toBe(0);
    expect(await reservedFor(deleteApplication)).toBeUndefined();
  });

  it("is not waited for by changes, which are counted when their size is known", async () => {
    const budget = createResponseBudget(kib, 1);
    budget.update("tenant", 0, 2 * kib);
    budget.update("other", 0, 2 * kib);
    await expect(reservedFor(getApplication, {}, budget)).rejects.toMatchObject({
      problemCode: "overloaded",
    });
    const { updateApplication, disableApplication, regenerateApplicationKey } =
      ApplicationService.method;
    for (const method of [updateApplication, disableApplication, regenerateApplicationKey]) {
      expect(await reservedFor(method, {}, budget)).toBe(0);
    }
  });

  it("is enough for 16 pages of one tenant by default", async () => {
    const budget = createResponseBudget(64 * kib * kib, 1);
    for (let page = 0; page < 16; page++) {
      await reservedFor(listApplications, {}, budget);
    }
    await expect(reservedFor(listApplications, {}, budget)).rejects.toMatchObject({
      problemCode: "overloaded",
    });
  });
});
