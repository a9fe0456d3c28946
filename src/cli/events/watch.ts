import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEventsResponse } from "../../../gen/latchkey/v1/event_service_pb.js";
import type { Calling } from "../with-client.js";
import { type EventFlags, eventFilter } from "./list.js";

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
