import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ListEventsResponseSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { CommandFailure } from "../failure.js";
import { type ListFlags, moreNote, readPages } from "../pages.js";
import { tableText } from "../table.js";
import { type Calling, type CallingFlags, withClient } from "../with-client.js";
import { eventColumns } from "./event-table.js";
import { followEvents } from "./follow.js";

export interface EventFlags extends CallingFlags, ListFlags {
  readonly follow?: boolean;
  readonly target?: string;
  readonly actor?: string;
  readonly kind?: string;
  readonly since?: Date;
  readonly until?: Date;
}

/** Shows what happened, or what happens. */
export async function showEvents(flags: EventFlags): Promise<void> {
  if (flags.follow && flags.until) {
    throw new CommandFailure("--follow goes on for ever: leave out --until.", "usage");
  }
  await withClient(flags, (calling) =>
    flags.follow ? followEvents(flags, calling) : listEvents(flags, calling),
  );
}

async function listEvents(flags: EventFlags, calling: Calling): Promise<void> {
  const { output } = calling;
  const found = await readEvents(flags, calling);
  output.show(ListEventsResponseSchema, found, (look) => tableText(eventColumns, found.data, look));
  output.note(moreNote(found));
}

/** What happened so far, newest first. */
export function readEvents(flags: EventFlags, { client, call }: Calling) {
  const { since, until } = flags;
  const search = {
    ...eventFilter(flags),
    ...(since && { since: timestampFromDate(since) }),
    ...(until && { until: timestampFromDate(until) }),
  };
  return readPages(flags, (place) => client.events.listEvents({ ...search, ...place }, call));
}

/** What lists and watches can both be limited to. */
export function eventFilter({ target, actor, kind }: EventFlags) {
  return { ...(target && { target }), ...(actor && { actor }), ...(kind && { kind }) };
}
