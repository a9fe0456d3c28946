import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { Peer } from "../../call.js";
import { mayContainKey } from "../../contract/key-text.js";
import { bodyTooLarge, overloaded, requestCanceled } from "../../errors.js";
import type { MaybePromise } from "../../lib/async.js";
import { compact } from "../../lib/bytes.js";
import { Cancellation } from "../../lib/cancellation.js";
import type { CountedResponse, ResponseBudget, ResponseOwner } from "../../lib/response-budget.js";
import type { TimerQueue } from "../../lib/timeout.js";
import {
  type BodyBudget,
  hasTooManyChunks,
  requestAborted,
  tooManyChunks,
  waitToParse,
} from "./body-limits.js";
import { type HeaderList, noStore, securityHeaders } from "./headers.js";

/** Handles a request, or returns `undefined` so that the next handler gets it. */
export type RequestHandler = (exchange: Exchange) => MaybePromise<Handled> | undefined;

/** Who logs and counts a request that was handled: a call does so itself, and the dispatcher does for others. */
export type Handled = "logged" | "unlogged";
export const logged: Handled = "logged";
export const unlogged: Handled = "unlogged";

/** Node's own objects for a request and its response. */
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** The context that all exchanges of a listener share. */
export interface ExchangeContext {
  /** The memory budget of all bodies. */
  readonly bodyBudget: BodyBudget;
  /** The memory budget of the responses of all calls. */
  readonly responseBudget: ResponseBudget;
  /** Timeouts of HTTP/2 bodies and of messages in a stream, of calls with a key. */
  readonly bodyTimeouts: TimerQueue;
  /** The same for refused calls and methods that need no key, which must not use up the timeouts of others. */
  readonly unauthenticatedTimeouts: TimerQueue;
  /** Timeouts of responses that the client does not read. */
  readonly responseTimeouts: TimerQueue;
  /** Whether connections should close after their last response. */
  readonly isClosing: () => boolean;
}

const emptyBody = Buffer.alloc(0);

/** Most responses are at most this large. Even many of them take little memory. */
const smallResponseBytes = 16 * 1024;

/** Milliseconds that a client may take to stop sending after its response. Trailers may still arrive. */
const abortDelayMs = 1_000;

/** Bytes of an unread body that are discarded, so that the client can read the response. */
const maxDiscardedBytes = 8 * 1024 * 1024;

/** Bytes that each discarded chunk counts in addition to its size. */
const discardedChunkCost = 2 * 1024;

/**
 * A request and its response, over HTTP/1.1 or HTTP/2. It covers requests and
 * responses with complete bodies at little cost. Streams use Node's own objects.
 */
export abstract class Exchange implements Peer {
  /** The path without the query. */
  readonly path: string;
  /** The query without its question mark. */
  readonly query: string;
  /** When it arrived, by `performance.now()`. */
  readonly startedAt = performance.now();
  /** The dispatcher replaces one that may be a key. */
  requestId: string;
  /** The request ID of the response, if it is not {@link requestId}. */
  private echoedRequestId: string | undefined;
  /** Aborts the work on the response. */
  readonly cancellation = new Cancellation();

  // Assign named functions to it, never function literals: V8 treats a literal
  // as a constant method, and keeps every call that it references alive.
  /** Called when the exchange ends, or the response is sent, while the body is being read. */
  onAbort?: (() => void) | undefined;
  /** Response headers of this exchange only. */
  private extraHeaders: string[] | undefined;
  /** Whether the response is a page or asset for browsers, with its own caching and security headers. */
  isWebPage = false;
  /** Whether the call was refused, or its method needs no key. */
  isUnauthenticated = false;
  protected isResponseSent = false;
  private isDiscarding = false;
  /** Bytes of the body budget that are reserved. */
  private reservedBytes = 0;
  private isReleased = false;
  /** Whose share of the response budget the response takes. Absent if it does not count. */
  private responseOwner: ResponseOwner | undefined;
  /** Absent while the response takes no memory of the budget. */
  private counted: CountedResponse | undefined;
  /** The status of the response, once it is sent. */
  status: number | undefined;
  /** The `code` of the problem in the response, if the request was not a call. */
  problemCode: string | undefined;

  constructor(
    readonly method: string,
    readonly url: string,
    readonly headers: IncomingHttpHeaders,
    protected readonly context: ExchangeContext,
  ) {
    // A proxy may send the absolute form.
    const address = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "");
    const mark = address.indexOf("?");
    this.path = mark < 0 ? address : address.slice(0, mark);
    this.query = mark < 0 ? "" : address.slice(mark + 1);
    this.requestId = requestIdOf(headers);
  }

  /** The remote address of the connection. */
  abstract readonly address: string;

  abstract readonly certificateNames: readonly string[];

  /** The number of headers, with repeated names counted each. */
  abstract readonly headerCount: number;

  /** The size of the headers in bytes, or 0 if Node has checked it. */
  abstract readonly headerSize: number;

  abstract readonly version: string;

  /** The headers as received: names and values in alternation. */
  protected abstract readonly rawHeaders: HeaderList;

  /** Whether a header, named in lower case, was sent more than once. Node joins some values, and drops others. */
  isRepeated(name: string): boolean {
    const { rawHeaders } = this;
    let count = 0;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const other = rawHeaders[index] as string;
      if (other.length === name.length && other.toLowerCase() === name) {
        count++;
      }
    }
    return count > 1;
  }

  /** The stream that the body is read from. */
  protected abstract readonly bodySource: IncomingMessage | Http2ServerRequest | ServerHttp2Stream;

  abstract readonly hasBody: boolean;

  /** Whether the body is complete, or will never be. */
  protected abstract readonly isBodyReceived: boolean;

  /** Sends the response, unless one was sent or the client has disconnected. */
  abstract send(status: number, headers: HeaderList, body?: Buffer | string): void;

  /** Sends 100 Continue if the client waits for it. */
  abstract sendContinue(): void;

  /** Stops the client from sending more of its body. */
  abstract abortBody(): void;

  /** Aborts the body if it does not arrive in time. Does nothing if a timeout is running. */
  abstract startBodyTimeout(): void;

  /** Returns Node's own objects, which must then send the response. */
  abstract native(): { readonly request: Request; readonly response: Response };

  addHeader(name: string, value: string): void {
    this.extraHeaders ??= [];
    this.extraHeaders.push(name, value);
  }

  /** Returns the caller's request ID in the response, whatever it is. It is not logged. */
  echoRequestId(): void {
    const { "x-request-id": header } = this.headers;
    this.echoedRequestId = typeof header === "string" ? header : undefined;
  }

  /** The headers of every response. */
  protected commonHeaders(): string[] {
    const headers = ["x-request-id", this.echoedRequestId ?? this.requestId];
    if (!this.isWebPage) {
      headers.push(...noStore);
    }
    if (this.extraHeaders) {
      headers.push(...this.extraHeaders);
    }
    return headers;
  }

  /** The headers of every response that browsers can read; they cannot read gRPC. */
  protected browserHeaders(): string[] {
    const headers = this.commonHeaders();
    if (!this.isWebPage) {
      headers.push(...securityHeaders);
    }
    return headers;
  }

  protected get expectsContinue(): boolean {
    return this.headers.expect?.toLowerCase() === "100-continue";
  }

  /** Whether the exchange has ended. */
  abstract readonly isClosed: boolean;

  /** Makes sure that `closed` is called when the exchange ends. Needed only if it does not end in this tick. */
  abstract watchClose(): void;

  /** Reads the complete body. Rejects a body over the limit as soon as possible. */
  readBody(limit: number): MaybePromise<Buffer> {
    if (Number(this.headers["content-length"] ?? 0) > limit) {
      throw bodyTooLarge(limit);
    }
    if (!this.hasBody) {
      return emptyBody;
    }
    if (this.isClosed) {
      throw requestAborted();
    }
    this.sendContinue();
    this.startBodyTimeout();
    return this.collectBody(limit);
  }

  private collectBody(limit: number): Promise<Buffer> {
    const { bodySource } = this;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const onData = (chunk: Buffer) => {
        size += chunk.length;
        if (size > limit) {
          abort(bodyTooLarge(limit));
        } else if (hasTooManyChunks(chunks.length, size)) {
          abort(tooManyChunks());
        } else if (!this.reserveMemory(size)) {
          abort(overloaded());
        } else {
          // Most bodies have one chunk, which is not kept for long.
          chunks.push(chunks.length === 0 ? chunk : compact(chunk));
        }
      };
      const abort = (reason = requestAborted()) => {
        this.onAbort = undefined;
        bodySource.removeListener("data", onData);
        bodySource.removeListener("end", onEnd);
        chunks.length = 0;
        reject(reason);
      };
      const finish = () => {
        this.onAbort = undefined;
        resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
      };
      const onEnd = () => {
        this.onBodyEnd();
        const waiting = waitToParse(size);
        if (waiting) {
          waiting.then(finish);
        } else {
          finish();
        }
      };
      bodySource.on("data", onData);
      bodySource.on("end", onEnd);
      this.onAbort = abort;
    });
  }

  /** Sets how many bytes of the body are in memory. Returns whether the body budget allows it. */
  reserveMemory(bytes: number): boolean {
    if (this.isReleased || !this.context.bodyBudget.update(this.reservedBytes, bytes)) {
      return false;
    }
    this.reservedBytes = bytes;
    return true;
  }

  /** Counts the response for its owner, with the memory that is reserved for it, until {@link releaseResponse}. */
  countResponseFor(owner: ResponseOwner, reserved: CountedResponse | undefined): void {
    this.responseOwner = owner;
    this.counted = reserved;
  }

  /** Counts the response by its size, as it is sent. Returns whether to release it when the client has read it. */
  protected countResponse(size: number): boolean {
    if (this.responseOwner === undefined || size <= smallResponseBytes) {
      this.releaseResponse();
      return false;
    }
    this.counted ??= this.context.responseBudget.open(this.responseOwner);
    this.counted.send(size, () => this.abortResponse());
    return true;
  }

  protected releaseResponse(): void {
    this.counted?.release();
    this.counted = undefined;
  }

  /** Stops reading the body and releases its memory. */
  private releaseMemory(): void {
    this.onAbort?.();
    if (this.reservedBytes > 0) {
      this.context.bodyBudget.update(this.reservedBytes, 0);
      this.reservedBytes = 0;
    }
    this.isReleased = true;
  }

  /** Aborts the body of a client that keeps sending after its response. */
  abortBodySoon(): void {
    setTimeout(() => this.abortBody(), abortDelayMs).unref();
  }

  /** Called when a body has been read completely. */
  protected onBodyEnd(): void {}

  /** Called when a response is written: the client has to read it and to stop sending in time. */
  finish(): void {
    this.discardBody();
    this.startResponseTimeout();
  }

  /** Closes the exchange if the client does not read its response in time. */
  protected abstract startResponseTimeout(): void;

  /** Closes the exchange, so that the unread rest of its response takes no memory. */
  abstract abortResponse(): void;

  /** Discards the rest of the body, and aborts it if that is too much. */
  discardBody(): void {
    this.releaseMemory();
    if (this.isBodyReceived || this.isDiscarding) {
      return;
    }
    this.isDiscarding = true;
    const { bodySource } = this;
    let discarded = 0;
    bodySource.removeAllListeners("readable");
    bodySource.on("error", () => {});
    bodySource.on("data", (chunk: Buffer) => {
      discarded += chunk.length + discardedChunkCost;
      if (discarded > maxDiscardedBytes) {
        this.abortBody();
      }
    });
    bodySource.on("end", () => this.onBodyEnd());
    bodySource.resume();
    this.isUnauthenticated = true;
    this.startBodyTimeout();
  }

  protected closed(): void {
    this.releaseMemory();
    this.releaseResponse();
    if (!this.isResponseSent) {
      this.cancellation.cancel(requestCanceled());
    }
  }
}

const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's request ID if it is well-formed and not a key, otherwise a new one. */
function requestIdOf(headers: IncomingHttpHeaders): string {
  const header = headers["x-request-id"];
  return typeof header === "string" && requestIdPattern.test(header) && !mayContainKey(header)
    ? header
    : randomUUID();
}
