import { Code, ConnectError } from "@connectrpc/connect";
import type { Clocks, Subject } from "./guard-truth.js";
import type { ScriptedService, ScriptedStream } from "./scripted-service.js";

/** The stream as the service sees it, with what is on its way to the guard. */
interface Connection {
  readonly stream: ScriptedStream;
  readonly sent: (() => void)[];
  position: number;
}

/** The service's side of the stream of changes, and the way to the guard. */
export function createNetwork(service: ScriptedService, clocks: Clocks) {
  const log: Subject[] = [];
  let connection: Connection | undefined;
  let generation = 0;
  let pruned = 0;

  /** Tells some of what the log holds; more may follow. */
  function emit(most: number, missed = false): void {
    if (!connection) {
      return;
    }
    const { stream, sent, position } = connection;
    const told = log.slice(position, position + most);
    connection.position += told.length;
    const isComplete = connection.position === log.length;
    const message = {
      reset: missed,
      token: `${generation}:${connection.position}`,
      changes: told.map(({ applicationId, sessionId }) => ({
        applicationId,
        ...(sessionId && { sessionId }),
      })),
      completeUntil: isComplete ? Math.floor(clocks.serviceTime(clocks.now())) : undefined,
    };
    sent.push(() => stream.send(message));
  }

  function breakOff(): void {
    service.streams.at(-1)?.fail(new ConnectError("gone", Code.Unavailable));
    connection = undefined;
  }

  return {
    tell: (subject: Subject) => void log.push(subject),
    emit,

    /** The service takes the stream that the guard opened last. */
    accept(): void {
      const stream = service.streams.at(-1);
      if (!stream || stream === connection?.stream || stream.signal?.aborted) {
        return;
      }
      const token = stream.request.resumeToken ?? `${generation}:${log.length}`;
      const [tokenGeneration, position = 0] = token.split(":").map(Number);
      if (tokenGeneration !== generation) {
        stream.fail(new ConnectError("not of these data", Code.InvalidArgument));
        return;
      }
      const isMissed = position < pruned;
      connection = { stream, position: isMissed ? log.length : position, sent: [] };
      emit(2, isMissed);
    },

    /** Some of what was sent arrives. */
    arrive(most: number): void {
      for (const send of connection?.sent.splice(0, most) ?? []) {
        send();
      }
    },

    /** The stream breaks, and what was on its way is lost. */
    breakOff,

    /** The log forgets what happened so far. */
    prune(): void {
      pruned = log.length;
    },

    /** The service has other data from now on: no token is good any more. */
    replaceLog(): void {
      generation++;
      log.length = 0;
      pruned = 0;
      breakOff();
    },
  };
}
