import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import type { Timeout, TimerQueue } from "../../lib/timeout.js";
import type { Connection } from "../listener/connection.js";
import { Exchange } from "./exchange.js";
import type { HeaderList } from "./headers.js";

interface Surroundings {
  readonly connection: Connection;
  /** How long the sender of a body, or of a message in a stream, may take. */
  readonly bodyTimeouts: TimerQueue;
  /** The same for those who have shown no key that works. */
  readonly bodyTimeoutsOfStrangers: TimerQueue;
}

/** Headers whose values never come again: the table of those that may would soon hold nothing else. */
const unlikeAnyOther = ["x-request-id"];

/** For those who need not be told that something is done. */
const ignore = () => {};

/** A request and its answer over HTTP/2. */
export class Http2Exchange extends Exchange {
  readonly version = "2.0";
  /** nghttp2 refuses such requests. */
  readonly hasSeveralHosts = false;
  private bodyTimeout: Timeout | undefined;
  private isWatched = false;
  private nodes: { request: Http2ServerRequest; response: Http2ServerResponse } | undefined;

  constructor(
    readonly stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    private readonly flags: number,
    private readonly rawHeaders: string[],
    private readonly surroundings: Surroundings,
  ) {
    super(headers[":method"] ?? "", headers[":path"] ?? "/", headers, surroundings.connection);
  }

  /** How long the sender of the body, or of a message, may take. */
  get bodyTimeouts(): TimerQueue {
    const { connection, bodyTimeouts, bodyTimeoutsOfStrangers } = this.surroundings;
    return connection.isKnown ? bodyTimeouts : bodyTimeoutsOfStrangers;
  }

  get headerCount(): number {
    return this.rawHeaders.length / 2;
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

  protected watchClose(): void {
    if (this.isWatched) {
      return;
    }
    this.isWatched = true;
    this.stream.on("close", () => {
      this.bodyTimeout?.cancel();
      this.closed();
    });
  }

  protected get source(): ServerHttp2Stream | Http2ServerRequest {
    return this.nodes?.request ?? this.stream;
  }

  /** An empty body may be over before anyone asks for it. */
  get hasBody(): boolean {
    return (this.flags & constants.NGHTTP2_FLAG_END_STREAM) === 0 && !this.stream.readableEnded;
  }

  protected get isReceived(): boolean {
    return this.stream.destroyed || !this.hasBody;
  }

  send(status: number, headers: HeaderList, body: Buffer | string = ""): void {
    if (!this.mayAnswer(status)) {
      return;
    }
    const fields = this.fieldsOf(status, this.pageHeaders(), headers);
    const isEmpty = status === 204 || this.method === "HEAD";
    if (status !== 204) {
      fields["content-length"] = Buffer.byteLength(body);
    }
    if (isEmpty || body.length === 0) {
      this.stream.respond(fields, { endStream: true });
    } else {
      this.stream.respond(fields);
      this.stream.end(body);
    }
  }

  /** Answers with what goes before a body and what goes after it. */
  sendWithTrailers(headers: HeaderList, body: Uint8Array, trailers: HeaderList): void {
    const { stream } = this;
    if (!this.mayAnswer(200)) {
      return;
    }
    stream.respond(this.fieldsOf(200, this.commonHeaders(), headers), { waitForTrailers: true });
    this.endWith(trailers, body);
    // Node would tell of the end only when the body is sent, and the trailers would take another trip.
    stream._final(ignore);
  }

  /** Begins an answer that is written in parts, unless it has begun. */
  beginStream(headers: HeaderList): void {
    if (this.status === undefined && !this.stream.destroyed && !this.stream.closed) {
      this.status = 200;
      const fields = this.fieldsOf(200, this.commonHeaders(), headers);
      this.stream.respond(fields, { waitForTrailers: true });
    }
  }

  /** Writes a part of an answer that has begun. Answers whether more can be taken now. */
  writeStream(part: Uint8Array): boolean {
    this.connection.noteProgress();
    return this.stream.destroyed || this.stream.closed || this.stream.write(part);
  }

  /** Ends an answer that has begun. */
  finishStream(trailers: HeaderList): void {
    this.isAnswered = true;
    this.endWith(trailers);
  }

  private endWith(trailers: HeaderList, body?: Uint8Array): void {
    const { stream } = this;
    if (this.nodes) {
      // Node's own response would send trailers, too.
      stream.removeAllListeners("wantTrailers");
    }
    stream.on("wantTrailers", () => stream.sendTrailers(fieldsIn(trailers, {})));
    stream.end(body);
  }

  /** Answers with trailers that nothing goes before. */
  sendTrailersOnly(trailers: HeaderList): void {
    if (this.mayAnswer(200)) {
      const fields = this.fieldsOf(200, this.commonHeaders(), trailers);
      this.stream.respond(fields, { endStream: true });
    }
  }

  private mayAnswer(status: number): boolean {
    const { headersSent, destroyed, closed } = this.stream;
    if (this.status !== undefined || headersSent || destroyed || closed) {
      return false;
    }
    this.status = status;
    this.isAnswered = true;
    return true;
  }

  private fieldsOf(status: number, ours: HeaderList, headers: HeaderList): OutgoingHttpHeaders {
    const fields: OutgoingHttpHeaders = { ":status": status, [sensitiveHeaders]: unlikeAnyOther };
    return fieldsIn(headers, fieldsIn(ours, fields));
  }

  askForBody(): void {
    const { destroyed, closed, headersSent } = this.stream;
    if (this.isAskedFirst && !destroyed && !closed && !headersSent) {
      this.stream.additionalHeaders({ ":status": 100 });
    }
  }

  cutOffBody(): void {
    if (this.isReceived) {
      return;
    }
    // One that does not take its answer either would not be closed by good words.
    this.stream.close(
      this.stream.writableFinished
        ? constants.NGHTTP2_NO_ERROR
        : constants.NGHTTP2_ENHANCE_YOUR_CALM,
    );
    // What nobody reads would keep the stream open.
    this.source.removeAllListeners("readable");
    this.source.resume();
  }

  cutOffSlowBody(): void {
    if (this.isReceived || this.bodyTimeout) {
      return;
    }
    this.bodyTimeout = this.bodyTimeouts.start(() => this.cutOffBody());
    this.watchClose();
  }

  /** Other calls come over the same connection. */
  protected stopReceiving(): boolean {
    return false;
  }

  protected override bodyEnded(): void {
    this.bodyTimeout?.cancel();
  }

  native() {
    if (!this.nodes) {
      const { stream, headers, rawHeaders } = this;
      const request = new Http2ServerRequest(stream, headers, {}, rawHeaders);
      const response = new Http2ServerResponse(stream);
      if (stream.readableEnded) {
        // It has waited for its turn, and would wait for an end that has come before it.
        request.push(null);
      }
      for (const [name, value] of Object.entries(fieldsIn(this.pageHeaders(), {}))) {
        response.setHeader(name, value as string);
      }
      this.nodes = { request, response };
    }
    return this.nodes;
  }
}

function fieldsIn(headers: HeaderList, fields: OutgoingHttpHeaders): OutgoingHttpHeaders {
  for (let at = 0; at < headers.length; at += 2) {
    fields[headers[at] as string] = headers[at + 1];
  }
  return fields;
}
