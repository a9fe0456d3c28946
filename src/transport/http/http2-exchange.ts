import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import { afterPendingIo } from "../../lib/event-loop.js";
import type { Timeout, TimerQueue } from "../../lib/timeout.js";
import { certificateNamesOf } from "./client-certificate.js";
import { Exchange, type ExchangeContext } from "./exchange.js";
import type { HeaderList } from "./headers.js";
import type { Http2Connection } from "./http2-connection.js";

/** Headers with unique values. HPACK must not index them: they would fill its table. */
const neverIndexed = ["x-request-id"];

/**
 * A call counts as canceled at once if the client cancels it within this many milliseconds.
 * Later cancellations are deadlines, and may be many while the store is unavailable.
 */
const cancelWindowMs = 100;

/** Milliseconds in which a client has to read a connection, so that one of its streams can be reset. */
const resetMs = 100;

/** A request and its response over HTTP/2. */
export class Http2Exchange extends Exchange {
  readonly version = "2.0";
  private bodyTimeout: Timeout | undefined;
  private responseTimeout: Timeout | undefined;
  private nodeMessages: { request: Http2ServerRequest; response: Http2ServerResponse } | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    private readonly flags: number,
    protected readonly rawHeaders: string[],
    private readonly connection: Http2Connection,
    context: ExchangeContext,
  ) {
    super(headers[":method"] ?? "", headers[":path"] ?? "/", headers, context);
    connection.openStreams++;
    stream.on("close", () => this.closed());
  }

  protected override closed(): void {
    const { connection, stream, startedAt } = this;
    connection.openStreams--;
    if (stream.aborted && !stream.headersSent && performance.now() - startedAt < cancelWindowMs) {
      connection.countCanceled();
    }
    this.bodyTimeout?.cancel();
    this.responseTimeout?.cancel();
    super.closed();
  }

  get bodyTimeouts(): TimerQueue {
    const { bodyTimeouts, unauthenticatedTimeouts } = this.context;
    return this.isUnauthenticated ? unauthenticatedTimeouts : bodyTimeouts;
  }

  /** Without the pseudo-headers, which come first: `:method`, `:path` and so on. */
  get headerCount(): number {
    const { rawHeaders } = this;
    let first = 0;
    while (rawHeaders[first]?.startsWith(":")) {
      first += 2;
    }
    return (rawHeaders.length - first) / 2;
  }

  get headerSize(): number {
    let size = 0;
    for (const text of this.rawHeaders) {
      size += text.length;
    }
    return size;
  }

  get address(): string {
    return this.stream.session?.socket?.remoteAddress ?? "";
  }

  get certificateNames(): readonly string[] {
    return certificateNamesOf(this.stream.session?.socket);
  }

  get isClosed(): boolean {
    return this.stream.destroyed;
  }

  /** The stream is always watched. */
  watchClose(): void {}

  protected get bodySource(): ServerHttp2Stream | Http2ServerRequest {
    return this.nodeMessages?.request ?? this.stream;
  }

  /** An empty body may have ended already. */
  get hasBody(): boolean {
    return (this.flags & constants.NGHTTP2_FLAG_END_STREAM) === 0 && !this.stream.readableEnded;
  }

  protected get isBodyReceived(): boolean {
    return this.stream.destroyed || !this.hasBody;
  }

  send(status: number, headers: HeaderList, body: Buffer | string = ""): void {
    if (!this.startResponse(status)) {
      return;
    }
    const fields = this.responseHeaders(status, this.browserHeaders(), headers);
    this.countResponse(body.length);
    const hasNoBody = status === 204 || status === 304;
    const isEmpty = hasNoBody || this.method === "HEAD";
    if (!hasNoBody) {
      fields["content-length"] = Buffer.byteLength(body);
    }
    if (isEmpty || body.length === 0) {
      this.stream.respond(fields, { endStream: true });
    } else {
      this.stream.respond(fields);
      this.stream.end(body);
    }
  }

  /** Sends a complete response with trailers. */
  sendWithTrailers(headers: HeaderList, body: Uint8Array, trailers: HeaderList): void {
    const { stream } = this;
    if (!this.startResponse(200)) {
      return;
    }
    this.countResponse(body.length);
    stream.respond(this.responseHeaders(200, this.commonHeaders(), headers), {
      waitForTrailers: true,
    });
    this.endStream(trailers, body);
  }

  /** Starts a streamed response, unless it has started. */
  beginStream(headers: HeaderList): void {
    if (this.status === undefined && !this.stream.destroyed && !this.stream.closed) {
      this.status = 200;
      const fields = this.responseHeaders(200, this.commonHeaders(), headers);
      this.stream.respond(fields, { waitForTrailers: true });
    }
  }

  /** Writes a part of a streamed response. Returns whether more can be written now. */
  writeStream(part: Uint8Array): boolean {
    return this.stream.destroyed || this.stream.closed || this.stream.write(part);
  }

  finishStream(trailers: HeaderList): void {
    this.isResponseSent = true;
    this.endStream(trailers);
  }

  private endStream(trailers: HeaderList, body?: Uint8Array): void {
    const { stream } = this;
    if (this.nodeMessages) {
      // Node's own response object would send trailers, too.
      stream.removeAllListeners("wantTrailers");
    }
    stream.on("wantTrailers", () => stream.sendTrailers(addHeaders(trailers, {})));
    stream.end(body);
  }

  /** Sends a response without a body whose headers are its trailers. */
  sendTrailersOnly(trailers: HeaderList): void {
    if (this.startResponse(200)) {
      this.releaseResponse();
      const fields = this.responseHeaders(200, this.commonHeaders(), trailers);
      this.stream.respond(fields, { endStream: true });
    }
  }

  /** Marks the response as sent. Returns `false` if one was sent, or the client has disconnected. */
  private startResponse(status: number): boolean {
    const { headersSent, destroyed, closed } = this.stream;
    if (this.status !== undefined || headersSent || destroyed || closed) {
      return false;
    }
    this.status = status;
    this.isResponseSent = true;
    return true;
  }

  private responseHeaders(
    status: number,
    common: HeaderList,
    headers: HeaderList,
  ): OutgoingHttpHeaders {
    const fields: OutgoingHttpHeaders = { ":status": status, [sensitiveHeaders]: neverIndexed };
    return addHeaders(headers, addHeaders(common, fields));
  }

  sendContinue(): void {
    const { destroyed, closed, headersSent } = this.stream;
    if (this.expectsContinue && !destroyed && !closed && !headersSent) {
      this.stream.additionalHeaders({ ":status": 100 });
    }
  }

  abortBody(): void {
    if (this.isBodyReceived) {
      return;
    }
    // NO_ERROR does not close a stream whose client does not read its response either.
    this.stream.close(
      this.stream.writableFinished
        ? constants.NGHTTP2_NO_ERROR
        : constants.NGHTTP2_ENHANCE_YOUR_CALM,
    );
    // Unread data would keep the stream open.
    this.bodySource.removeAllListeners("readable");
    this.bodySource.resume();
  }

  startBodyTimeout(): void {
    if (this.isBodyReceived || this.bodyTimeout) {
      return;
    }
    this.bodyTimeout = this.bodyTimeouts.start(() => this.abortBody());
  }

  protected startResponseTimeout(): void {
    const { stream } = this;
    if (!stream.destroyed && !this.responseTimeout) {
      this.responseTimeout = this.context.responseTimeouts.start(() => this.abortResponse());
    }
  }

  abortResponse(): void {
    const { stream, connection } = this;
    stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // The reset cannot be sent, nor is the memory freed, if the client does not read the connection at all.
    const dropIfOpen = () => {
      if (!stream.destroyed) {
        connection.drop();
      }
    };
    setTimeout(afterPendingIo(dropIfOpen), resetMs).unref();
  }

  protected override onBodyEnd(): void {
    this.bodyTimeout?.cancel();
  }

  native() {
    if (!this.nodeMessages) {
      const { stream, headers, rawHeaders } = this;
      const request = new Http2ServerRequest(stream, headers, {}, rawHeaders);
      const response = new Http2ServerResponse(stream);
      if (stream.readableEnded) {
        // The stream ended while the call was queued, so the request would never see its end.
        request.push(null);
      }
      for (const [name, value] of Object.entries(addHeaders(this.browserHeaders(), {}))) {
        response.setHeader(name, value as string);
      }
      this.nodeMessages = { request, response };
    }
    return this.nodeMessages;
  }
}

function addHeaders(headers: HeaderList, fields: OutgoingHttpHeaders): OutgoingHttpHeaders {
  for (let index = 0; index < headers.length; index += 2) {
    fields[headers[index] as string] = headers[index + 1];
  }
  return fields;
}
