import { setTimeout as sleep } from "node:timers/promises";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type Event,
  EventSchema,
  ListEventsResponseSchema,
  type WatchEventsResponse,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { nextPause, shortestPause } from "../../lib/reconnect.js";
import { explainCall } from "../call-errors.js";
import { type Calling, type CallingFlags, withClient } from "../client.js";
import { CommandFailure } from "../errors.js";
import { type ListFlags, moreNote, readPages } from "../output.js";
import { type Column, isoText, layOut, tableText } from "../table.js";

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

/** A call that ended so does not work a second time either. */
const lastingCodes = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

/** Shows each event as it happens, until it is interrupted. A connection that breaks is opened anew where it broke off. */
export async function followEvents(flags: EventFlags, calling: Calling): Promise<void> {
  const { output } = calling;
  const show = createShow(calling);
  let resumeToken: string | undefined;
  for (let pause = shortestPause; ; pause = nextPause(pause)) {
    try {
      for await (const message of watchEvents(flags, calling, resumeToken)) {
        if (resumeToken === undefined) {
          await showEarlier(flags, calling, show);
        }
        resumeToken = message.resumeToken;
        pause = shortestPause;
        if (message.reset) {
          output.warn("Events may be missing here: list them to see.");
        }
        message.events.forEach(show);
      }
      output.warn("The service has ended the connection: connecting again.");
    } catch (error) {
      const isLasting = error instanceof ConnectError && lastingCodes.has(error.code);
      if (isLasting || resumeToken === undefined) {
        throw error;
      }
      const { message } = explainCall(error, calling.connection.url) as Error;
      output.warn(`The connection is lost: connecting again. (${message})`);
    }
    await sleep(pause);
  }
}

/** What happened since the moment that was asked for, once it is sure that nothing after it is missed. */
async function showEarlier(
  flags: EventFlags,
  calling: Calling,
  show: (event: Event) => void,
): Promise<void> {
  if (flags.since) {
    const { data } = await readEvents({ ...flags, all: true }, calling);
    data.toReversed().forEach(show);
  }
}

/** Shows each event once, below a header where people read it. */
function createShow({ output }: Calling): (event: Event) => void {
  const table = layOut(eventColumns, [], output.look);
  const shown = createRecent();
  if (!output.isJson) {
    process.stdout.write(`${table.header}\n`);
  }
  return (event) => {
    if (shown.add(event.id)) {
      output.showLine(EventSchema, event, () => `${table.line(event)}\n`);
    }
  };
}

/** How many are remembered: what comes twice does so soon. */
const mostRemembered = 100_000;

function createRecent() {
  const ids = new Set<string>();
  return {
    /** Whether it is new. */
    add(id: string): boolean {
      if (ids.has(id)) {
        return false;
      }
      if (ids.size >= mostRemembered) {
        ids.clear();
      }
      ids.add(id);
      return true;
    },
  };
}

/**
 * Watches events over one connection. The service lets itself be heard also
 * where nothing happens: one that is silent for as long as an answer may take
 * is given up, as nothing else tells that the way to it broke.
 */
export async function* watchEvents(
  flags: EventFlags,
  { client }: Calling,
  resumeToken: string | undefined,
): AsyncGenerator<WatchEventsResponse> {
  const from = resumeToken === undefined ? {} : { resumeToken };
  const silence = new AbortController();
  const giveUp = () => silence.abort(new ConnectError("it is silent", Code.DeadlineExceeded));
  const request = { ...eventFilter(flags), ...from };
  let timer = setTimeout(giveUp, flags.timeout);
  try {
    for await (const message of client.events.watchEvents(request, { signal: silence.signal })) {
      clearTimeout(timer);
      yield message;
      timer = setTimeout(giveUp, flags.timeout);
    }
  } finally {
    clearTimeout(timer);
  }
}
