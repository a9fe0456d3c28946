import { Code, ConnectError } from "@connectrpc/connect";
import type { FakeService, FakeStream } from "./fake-service.js";
import type { Clocks, Principal } from "./guard-model.js";

/** The service side of a stream, with its messages in flight. */
interface Connection {
  readonly stream: FakeStream;
  readonly inFlight: (() => void)[];
  position: number;
}

/** The change stream of the service and its network. */
export function createNetwork(service: FakeService, clocks: Clocks) {
  const log: Principal[] = [];
  let connection: Connection | undefined;
  let generation = 0;
  let pruned = 0;

  /** Sends at most `limit` entries of the log. */
  function sendChanges(limit: number, isReset = false): void {
    if (!connection) {
      return;
    }
    const { stream, inFlight, position } = connection;
    const entries = log.slice(position, position + limit);
    connection.position += entries.length;
    const isComplete = connection.position === log.length;
    const message = {
      reset: isReset,
      token: `${generation}:${connection.position}`,
      changes: entries.map(({ applicationId, sessionId }) => ({
        applicationId,
        ...(sessionId && { sessionId }),
      })),
      completeUntil: isComplete ? Math.floor(clocks.serviceTime(clocks.now())) : undefined,
    };
    inFlight.push(() => stream.send(message));
  }

  function disconnect(): void {
    service.streams.at(-1)?.fail(new ConnectError("unreachable", Code.Unavailable));
    connection = undefined;
  }

  return {
    publish: (principal: Principal) => void log.push(principal),
    sendChanges,

    /** The service accepts the stream that the guard opened last. */
    accept(): void {
      const stream = service.streams.at(-1);
      if (!stream || stream === connection?.stream || stream.signal?.aborted) {
        return;
      }
      const token = stream.request.resumeToken ?? `${generation}:${log.length}`;
      const [tokenGeneration, position = 0] = token.split(":").map(Number);
      if (tokenGeneration !== generation) {
        stream.fail(
          new ConnectError("the resume token belongs to other data", Code.InvalidArgument),
        );
        return;
      }
      const isReset = position < pruned;
      connection = { stream, position: isReset ? log.length : position, inFlight: [] };
      sendChanges(2, isReset);
    },

    /** At most `limit` of the sent messages arrive. */
    deliverChanges(limit: number): void {
      for (const deliver of connection?.inFlight.splice(0, limit) ?? []) {
        deliver();
      }
    },

    /** Breaks the stream. Messages in flight are lost. */
    disconnect,

    /** Removes all entries of the log. */
    prune(): void {
      pruned = log.length;
    },

    /** Replaces the data of the service: resume tokens become invalid. */
    replaceLog(): void {
      generation++;
      log.length = 0;
      pruned = 0;
      disconnect();
    },
  };
}
