import { randomUUID } from "node:crypto";
import { CredentialStateRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import { createConverter } from "../../../src/contract/message-converter.js";
import type {
  CredentialState,
  EventQuery,
  EventRecord,
  NewEvent,
} from "../../../src/store/port/events.js";
import type { OperableStore } from "../../support/store/operations.js";
import { grants, rule, times } from "./fixtures.js";

export const day = 24 * 3_600_000;

const completeState = createConverter(CredentialStateRecordSchema, { withDefaults: true });

/** A state in which all other fields are empty. */
export function aState(fields: Partial<CredentialState>): CredentialState {
  return completeState(fields) as CredentialState;
}

/** A new event with only the required fields. */
export function anEvent(fields: Partial<NewEvent> = {}): NewEvent {
  return {
    tenantId: randomUUID(),
    kind: "application.updated",
    outcome: "success",
    target: { applicationId: randomUUID() },
    ...fields,
  };
}

/** A new event with all fields. */
export function aFullEvent(fields: Partial<NewEvent> = {}): NewEvent {
  return anEvent({
    outcome: "denied",
    actor: { applicationId: randomUUID(), keyId: randomUUID(), name: "admin" },
    target: {
      applicationId: randomUUID(),
      sessionId: randomUUID(),
      keyId: randomUUID(),
      name: "shop",
    },
    before: aState({ ...grants, name: "shop", disabled: false }),
    after: aState({
      name: "till",
      disabled: true,
      allowedOrigins: ["https://shop.example"],
      allowedCidrs: ["10.0.0.0/8"],
      expiresAt: 4_200_000_000_000,
    }),
    reason: "PERMISSION_DENIED",
    method: "latchkey.v1.ApplicationService/UpdateApplication",
    requestId: randomUUID(),
    address: "2001:db8::1",
    count: 12,
    endsAt: 4_300_000_000_000,
    ...fields,
  });
}

/** The target of large events. */
export const largeTarget = randomUUID();

/** An event with many long rules before and after the change. A thousand rules take a megabyte. */
export function aLargeEvent(rules: number, fields: Partial<NewEvent> = {}): NewEvent {
  const long = { ...rule, description: "x".repeat(300) };
  const state = aState({ rules: times(rules, () => long) });
  const target = { applicationId: largeTarget };
  return anEvent({ target, before: state, after: state, ...fields });
}

/** Lists all matching events, page by page. */
export async function listEvents(
  { events }: OperableStore,
  query: Omit<EventQuery, "size"> & { readonly size?: number },
): Promise<EventRecord[]> {
  const items: EventRecord[] = [];
  let after = query.after;
  do {
    const page = await events.list({ size: 100, ...query, after });
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return items;
}
