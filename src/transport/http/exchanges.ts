import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Limits } from "../../config/limits.js";
import { createTimerQueue } from "../../lib/timeout.js";
import { type Connected, type Connection, connectionKey } from "../listener/connection.js";
import { watchConduct } from "../listener/http2-floods.js";
import type { Exchange } from "./exchange.js";
import { Http1Exchange } from "./http1-exchange.js";
import { Http2Exchange } from "./http2-exchange.js";

interface ExchangesOptions {
  readonly onExchange: (exchange: Exchange) => void;
  readonly limits: Limits;
  /** Whether connections should end with their last answer. */
  readonly isClosing: () => boolean;
}

/** How many requests of HTTP/1.1 may be sent one upon the other. Those of HTTP/2 have a limit of their own. */
const mostWaiting = 500;

/**
 * For how many bodies over HTTP/2 is waited at once of those who have shown no key that works.
 * Streams cost memory even where nothing is sent on them; the one that is awaited longest goes.
 */
const mostAwaited = 1_000;

/** Creates what makes an exchange of each request and of each stream of a session, when it is its turn. */
export function createExchanges({ onExchange, limits, isClosing }: ExchangesOptions) {
  const bodyTimeouts = createTimerQueue(limits.bodyTimeout);
  const bodyTimeoutsOfStrangers = createTimerQueue(limits.bodyTimeout, mostAwaited);

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { [connectionKey]: connection } = request.socket as Connected;
    if (!connection) {
      return;
    }
    connection.requests++;
    connection.received++;
    const number = connection.received;
    response.on("close", connection.requestEnded);
    if (connection.turns.isFree()) {
      onExchange(new Http1Exchange(request, response, connection, number, isClosing));
    } else {
      serveLater(request, response, connection, number);
    }
  }

  /** A function of its own, as one that others see into costs even where they are not made. */
  function serveLater(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    number: number,
  ): void {
    const { turns } = connection;
    const serve = () =>
      onExchange(new Http1Exchange(request, response, connection, number, isClosing));
    if (turns.isCrowded() || turns.wait(() => request.destroyed || serve()) > mostWaiting) {
      stopParsing(request.socket);
      connection.drop();
    }
  }

  function onSession(session: Http2Session): void {
    const { [connectionKey]: connection } = session.socket as Connected;
    if (!connection) {
      session.destroy();
      return;
    }
    connection.session = session;
    const watchStream = watchConduct(session, connection, limits);
    const surroundings = { connection, bodyTimeouts, bodyTimeoutsOfStrangers };
    session.on("stream", (stream, headers, flags, rawHeaders: string[]) => {
      watchStream(stream);
      if (connection.turns.isFree()) {
        onExchange(new Http2Exchange(stream, headers, flags, rawHeaders, surroundings));
      } else {
        serveStreamLater(stream, headers, flags, rawHeaders, surroundings);
      }
    });
  }

  function serveStreamLater(...call: ConstructorParameters<typeof Http2Exchange>): void {
    const [stream, , , , { connection }] = call;
    if (connection.turns.isCrowded()) {
      // It is no fault of its client, who may send it again, as nothing of it is done.
      connection.streams.delete(stream);
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    } else {
      const serve = () => stream.closed || onExchange(new Http2Exchange(...call));
      connection.turns.wait(connection.flow.count(serve));
    }
  }

  return { onRequest, onSession };
}

/** Keeps Node from making requests of all that has come, as it would even after the end of the connection. */
function stopParsing(socket: Socket & { readonly parser?: { pause?(): void } | null }): void {
  socket.parser?.pause?.();
}
