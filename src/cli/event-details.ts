import { toJson } from "@bufbuild/protobuf";
import {
  type CredentialState,
  CredentialStateSchema,
  type Event,
  EventSchema,
  type Principal,
} from "../../gen/latchkey/v1/event_service_pb.js";
import { type NameOf, readNames } from "./apps/find-application.js";
import { type ClientFlags, withClient } from "./client.js";
import { formatTime } from "./output.js";
import { type Detail, formatDetails } from "./table.js";

/** Shows an event with all its fields, and what it changed. */
export async function showEvent(id: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const event = await client.events.getEvent({ id }, call);
    const nameOf = await readNames(context, [
      event.target?.applicationId,
      event.actor?.applicationId,
    ]);
    output.show(EventSchema, event, (display) => formatDetails(detailsOf(event, nameOf), display));
  });
}

function detailsOf(event: Event, nameOf: NameOf): readonly Detail[] {
  const { id, at, kind, outcome, reason, count, method, address, requestId, endsAt, openedOnly } =
    event;
  return [
    ["id", id],
    ["time", formatTime(at)],
    ["kind", kind],
    ["outcome", outcome],
    ["reason", reason],
    ["count", count?.toString()],
    ...principalDetails("target", event.target, nameOf),
    ...principalDetails("actor", event.actor, nameOf),
    ["method", method],
    ["address", address],
    ["request id", requestId],
    ["opened only", openedOnly ? "yes" : undefined],
    ["expires", formatTime(endsAt)],
    ...changes(event.before, event.after),
  ];
}

function principalDetails(
  label: string,
  principal: Principal | undefined,
  nameOf: NameOf,
): readonly Detail[] {
  const { name, applicationId, sessionId, keyId } = principal ?? {};
  const shown = name ?? (applicationId && nameOf(applicationId));
  return [
    shown ? [label, shown, applicationId] : [label, applicationId],
    [`${label} session`, sessionId],
    [`${label} key`, keyId],
  ];
}

/** The fields that differ before and after, each as one JSON value. */
function changes(before?: CredentialState, after?: CredentialState): readonly Detail[] {
  const [old, now] = [before, after].map((state) => (state ? toFields(state) : {}));
  return CredentialStateSchema.fields.flatMap(({ name }): readonly Detail[] => {
    const [removed, added] = [old?.[name], now?.[name]].map((value) => JSON.stringify(value));
    return removed === added ? [] : [[name, `${removed ?? "–"} → ${added ?? "–"}`]];
  });
}

function toFields(state: CredentialState): Readonly<Record<string, unknown>> {
  const options = { useProtoFieldName: true };
  return toJson(CredentialStateSchema, state, options) as Readonly<Record<string, unknown>>;
}
