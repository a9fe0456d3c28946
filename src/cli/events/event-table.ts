import { type Event, EventSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../field-facts.js";
import type { Column } from "../table.js";
import { isoText } from "../time-text.js";

const idWidth = 36;
const longestKind = Math.max(...choicesOf(EventSchema.field.kind).map(({ length }) => length));

/** The columns of events, as wide as they may become: some are shown before the next is known. */
export const eventColumns: readonly Column<Event>[] = [
  {
    title: "TIME",
    least: "2026-01-31 12:00:00Z".length,
    text: ({ at }) => (at ? isoText(at).replace("T", " ").replace(/\.\d+/, "") : ""),
    paint: (text, _, { faint }) => faint(text),
  },
  {
    title: "KIND",
    least: longestKind,
    text: ({ kind }) => kind,
    paint: (text, { outcome }, { bad, strong }) => (outcome === "denied" ? bad : strong)(text),
  },
  { title: "TARGET", least: idWidth, text: targetText },
  { title: "ABOUT", least: 30, text: aboutText, shrinks: true, isExtra: true },
  { title: "BY", least: idWidth, text: actorText, isExtra: true },
];

function targetText({ kind, target }: Event): string {
  const key = kind.startsWith("key.") ? target?.keyId : undefined;
  return key ?? target?.sessionId ?? target?.applicationId ?? "–";
}

function actorText({ actor }: Event): string {
  return actor?.sessionId ?? actor?.applicationId ?? "–";
}

function aboutText({ before, after, reason, count = 1, endsAt }: Event): string {
  const name = after?.name ?? before?.name;
  return [
    ...(name ? [name] : []),
    ...(reason ? [count > 1 ? `${reason} (${count} times)` : reason] : []),
    ...(endsAt ? [`ends ${isoText(endsAt)}`] : []),
  ].join(", ");
}
