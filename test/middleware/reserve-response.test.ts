import { create, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import type { AuthorizedCall } from "../../src/call.js";
import {
  type CountedResponse,
  createResponseBudget,
  type ResponseOwner,
} from "../../src/lib/response-budget.js";
import { createReserveResponse } from "../../src/middleware/reserve-response.js";

const kib = 1024;
const { listApplications, listApplicationKeys, getApplication, deleteApplication } =
  ApplicationService.method;

/** The bytes that are reserved for a call before it runs. */
async function reservedFor(
  method: DescMethod,
  fields: object = {},
  budget = createResponseBudget(64 * kib * kib, 1),
) {
  const before = budget.used;
  const call = {
    call: { method, cancellation: { reason: undefined }, countResponseFor: () => {} },
    caller: { application: { tenantId: "tenant", id: "application" } },
  } as unknown as AuthorizedCall;
  const request = create(method.input, fields as MessageInitShape<typeof method.input>);
  await createReserveResponse(budget)(call, request);
  return budget.used - before;
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

  it("is none for short lists, single records and changes, which never wait", async () => {
    const budget = createResponseBudget(kib, 1);
    await reservedFor(listApplications, {}, budget);
    await expect(reservedFor(listApplications, {}, budget)).rejects.toMatchObject({
      problemCode: "overloaded",
    });
    const { updateApplication } = ApplicationService.method;
    const others = [listApplicationKeys, getApplication, updateApplication, deleteApplication];
    for (const method of [AccessService.method.listPermissions, ...others]) {
      expect(await reservedFor(method, {}, budget)).toBe(0);
    }
  });

  it("is enough for 16 pages of one caller by default", async () => {
    const budget = createResponseBudget(64 * kib * kib, 1);
    for (let page = 0; page < 16; page++) {
      await reservedFor(listApplications, {}, budget);
    }
    await expect(reservedFor(listApplications, {}, budget)).rejects.toMatchObject({
      problemCode: "overloaded",
    });
  });

  it("is of no use to a key that was revoked while the list waited", async () => {
    const budget = createResponseBudget(kib * kib, 60_000);
    const owner = { tenant: "tenant", caller: "application" };
    const first = budget.open(owner);
    first.send(kib * kib, () => {});
    let counted: CountedResponse | undefined;
    const call = {
      call: {
        method: listApplications,
        cancellation: { reason: undefined },
        countResponseFor: (_owner: ResponseOwner, reserved: CountedResponse) => {
          counted = reserved;
        },
      },
      caller: { application: { tenantId: "tenant", id: "application" } },
      reauthorize: () => Promise.reject(new Error("revoked")),
    } as unknown as AuthorizedCall;
    const reserving = createReserveResponse(budget)(call, create(listApplications.input));
    first.release();
    await expect(reserving).rejects.toThrow("revoked");
    // The error response releases it.
    expect(budget.used).toBe(kib * kib);
    counted?.release();
    expect(budget.used).toBe(0);
  });
});
