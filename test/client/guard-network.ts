import { Code, ConnectError } from "@connectrpc/connect";
import type { ScriptedService, ScriptedStream } from "./fake-service.js";
import type { Clocks, Subject } from "./guard-model.js";

/** A stream on the side of the service, with the messages in flight. */
interface Connection {
  readonly stream: ScriptedStream;
  readonly sent: (() => void)[];
  position: number;
}

/** The change stream of the service and its network. */
export function createNetwork(service: ScriptedService, clocks: Clocks) {
  const log: Subject[] = [];
  let connection: Connection | undefined;
  let generation = 0;
  let pruned = 0;

  /** Sends some entries of the log; more may follow. */
  function emit(most: number, missed = false): void {
    if (!connection) {
      return;
    }
    const { stream, sent, position } = connection;
    const entries = log.slice(position, position + most);
    connection.position += entries.length;
    const isComplete = connection.position === log.length;
    const message = {
      reset: missed,
      token: `${generation}:${connection.position}`,
      changes: entries.map(({ applicationId, sessionId }) => ({
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
    publish: (subject: Subject) => void log.push(subject),
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
        stream.fail(new ConnectError("token of other data", Code.InvalidArgument));
        return;
      }
      const isMissed = position < pruned;
      connection = { stream, position: isMissed ? log.length : position, sent: [] };
      emit(2, isMissed);
    },

    /** Some of the sent messages arrive. */
    arrive(most: number): void {
      for (const send of connection?.sent.splice(0, most) ?? []) {
        send();
      }
    },

    /** The stream breaks, and messages in flight are lost. */
    breakOff,

    /** Removes all entries of the log. */
    prune(): void {
      pruned = log.length;
    },

    /** Replaces the data of the service: resume tokens become invalid. */
    replaceLog(): void {
      generation++;
      log.length = 0;
      pruned = 0;
      breakOff();
    },
  };
}
