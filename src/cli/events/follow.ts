import { setTimeout } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Event, EventSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { nextPause, shortestPause } from "../../client/stream-renewal.js";
import { explainCall } from "../call-failure.js";
import { layOut } from "../table.js";
import type { Calling } from "../with-client.js";
import { eventColumns } from "./event-table.js";
import { type EventFlags, readEvents } from "./list.js";
import { watchEvents } from "./watch.js";

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
    await setTimeout(pause);
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
