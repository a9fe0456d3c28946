import {
  Ban,
  CircleCheck,
  CircleDashed,
  Clock,
  FileInput,
  KeyRound,
  type LucideIcon,
  Pencil,
  Plus,
  ShieldX,
  Timer,
  Trash2,
} from "lucide-react";
import type { ReactNode } from "react";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { iconSize } from "../ui/buttons.js";
import { type Column, DataTable } from "../ui/data-table.js";
import { TimeAgo } from "../ui/time.js";
import { DenialBadge, EventSentence } from "./event-sentence.js";
import { methodInWords } from "./event-words.js";

interface EventTableProps {
  /** Undefined while they load. */
  readonly events: readonly Event[] | undefined;
  readonly empty: ReactNode;
  addressOf(event: Event): string;
}

/** One row per event, newest first. */
export function EventTable({ events, empty, addressOf }: EventTableProps) {
  return (
    <div className="event-table">
      <DataTable
        label="Events"
        columns={columns}
        count={events?.length ?? 0}
        rowAt={(index) => events?.[index]}
        keyOf={({ id }) => id}
        hrefOf={addressOf}
        isLoading={!events}
        empty={empty}
      />
    </div>
  );
}

const columns: readonly Column<Event>[] = [
  { title: "Event", cell: (event) => <EventCell event={event} /> },
  {
    title: "Method",
    width: "190px",
    cell: ({ method }) => (method === undefined ? "" : methodInWords(method)),
    hiddenIn: ["narrow", "card"],
  },
  { title: "Address", width: "130px", cell: ({ address }) => address, hiddenIn: ["card"] },
  { title: "Time", width: "120px", compactWidth: "112px", cell: ({ at }) => <TimeAgo at={at} /> },
];

function EventCell({ event }: { readonly event: Event }) {
  const { kind, outcome } = event;
  const Icon = iconOf(kind);
  return (
    <span className="event-cell" data-outcome={outcome}>
      <Icon size={iconSize} className="event-icon" aria-hidden />
      <span className="event-sentence">
        <EventSentence event={event} />
      </span>
      {outcome === "denied" && <DenialBadge event={event} />}
    </span>
  );
}

/** The first entry whose part occurs in the kind applies. */
const icons: readonly (readonly [part: string, icon: LucideIcon])[] = [
  ["access.denied", ShieldX],
  [".created", Plus],
  ["application.updated", Pencil],
  ["application.disabled", Ban],
  ["application.enabled", CircleCheck],
  ["application.deleted", Trash2],
  [".imported", FileInput],
  [".expir", Clock],
  ["key.", KeyRound],
  ["session", Timer],
];

function iconOf(kind: string): LucideIcon {
  return icons.find(([part]) => kind.includes(part))?.[1] ?? CircleDashed;
}
