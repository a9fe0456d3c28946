import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { Call, Peer } from "../../auth/caller.js";
import { mayHoldKey } from "../../contract/key-format.js";
import { bodyTooLarge, callerLeft, overloaded, Problem } from "../../errors.js";
import { compact } from "../../lib/bytes.js";
import { Cancellation } from "../../lib/cancellation.js";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import type { Connection } from "../listener/connection.js";
import { areTooManyParts, inTooManyParts, takeBodyTurn } from "./body.js";
import { type HeaderList, neverKept, noPage } from "./headers.js";

/** A request as Node's own interface to HTTP/1.1 and HTTP/2 has it. */
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/**
 * A request and its answer, over HTTP/1.1 or HTTP/2. It does itself what a
 * request with a whole body and a whole answer needs, at the price of little
 * more than that; for streams there is what Node offers.
 */
export abstract class Exchange implements Peer {
  /** The path without the query. */
  readonly path: string;
  /** The query without its question mark. */
  readonly query: string;
  readonly call: Call;

  // What is set here is named first, never a function written into the assignment: V8
  // takes such a one for a method that stays, and keeps with it every call that it sees.
  /** Called when the exchange is over, answered or not, if it is watched. */
  private onClose?: (exchange: Exchange) => void;
  /** Called when the exchange is over, or has its answer, while the body is still being read. */
  onCutOff?: (() => void) | undefined;
  /** Headers of the answer beside those of every answer. */
  private extraHeaders: string[] | undefined;
  /** Whether the answer is for a browser to show or to keep, and says itself how. */
  isPage = false;
  protected isAnswered = false;
  private isDropping = false;
  /** How many bytes of the body are held. */
  private held = 0;
  private isLetGo = false;
  /** Whether the exchange is over; known of those that are watched. */
  isClosed = false;
  /** Of the answer, once there is one. */
  status: number | undefined;
  /** Of the problem that a request which is no call was answered with, if it was. */
  code: string | undefined;

  constructor(
    readonly method: string,
    readonly url: string,
    readonly headers: IncomingHttpHeaders,
    readonly connection: Connection,
  ) {
    // A proxy may name the whole address.
    const address = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "");
    const mark = address.indexOf("?");
    this.path = mark < 0 ? address : address.slice(0, mark);
    this.query = mark < 0 ? "" : address.slice(mark + 1);
    const requestId = requestIdOf(headers);
    this.call = {
      requestId,
      startedAt: performance.now(),
      peer: this,
      cancellation: new Cancellation(),
      protocol: "rest",
    };
  }

  /** The address at the other end of the connection. */
  abstract readonly address: string;

  /** How many headers came, those of one name counted each. */
  abstract readonly headerCount: number;

  /** How many bytes the headers have, or 0 where Node itself has checked it. */
  abstract readonly headerSize: number;

  /** The version of HTTP. */
  abstract readonly version: string;

  /** Whether it names its host more than once. */
  abstract readonly hasSeveralHosts: boolean;

  /** Where the body can be read from. */
  protected abstract readonly source: IncomingMessage | Http2ServerRequest | ServerHttp2Stream;

  /** Whether the request comes with a body. */
  abstract readonly hasBody: boolean;

  /** Whether nothing of the body is outstanding. */
  protected abstract readonly isReceived: boolean;

  /** Answers, unless there is an answer, or nobody to hear it. */
  abstract send(status: number, headers: HeaderList, body?: Buffer | string): void;

  /** Asks a caller for its body that waits to be asked. */
  abstract askForBody(): void;

  /** Stops a caller from sending more of its body. */
  abstract cutOffBody(): void;

  /** Cuts a caller off that takes too long to send its body. */
  abstract cutOffSlowBody(): void;

  /** Has nothing more read of what a caller sends, where nobody else sends anything the same way. Answers whether that is so. */
  protected abstract stopReceiving(): boolean;

  /** What Node offers; who takes it, answers with it. */
  abstract native(): { readonly request: Request; readonly response: Response };

  addHeader(name: string, value: string): void {
    this.extraHeaders ??= [];
    this.extraHeaders.push(name, value);
  }

  /** What every answer carries. */
  protected commonHeaders(): string[] {
    const headers = ["x-request-id", this.call.requestId];
    if (!this.isPage) {
      headers.push(...neverKept);
    }
    if (this.extraHeaders) {
      headers.push(...this.extraHeaders);
    }
    return headers;
  }

  /** What every answer carries that a browser may take for a page: one of gRPC it cannot read. */
  protected pageHeaders(): string[] {
    const headers = this.commonHeaders();
    if (!this.isPage) {
      headers.push(...noPage);
    }
    return headers;
  }

  /** Whether the caller waits to be asked for its body. */
  protected get isAskedFirst(): boolean {
    return this.headers.expect?.toLowerCase() === "100-continue";
  }

  /** Watches for the end of an exchange that takes longer than this turn, and tells of it. */
  watch(onClose: (exchange: Exchange) => void): void {
    this.onClose = onClose;
    this.watchClose();
  }

  /** Has `closed` called when the exchange is over. */
  protected abstract watchClose(): void;

  /** Reads a whole body, or refuses one that is over the limit as soon as that is known. */
  readBody(limit: number): MaybePromise<Buffer> {
    if (Number(this.headers["content-length"] ?? 0) > limit) {
      throw bodyTooLarge(limit);
    }
    if (!this.hasBody) {
      return nothing;
    }
    if (this.isClosed) {
      throw cutOff();
    }
    this.askForBody();
    this.cutOffSlowBody();
    return this.collectBody(limit);
  }

  private collectBody(limit: number): Promise<Buffer> {
    const { source } = this;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const collect = (chunk: Buffer) => {
        size += chunk.length;
        if (size > limit) {
          giveUp(bodyTooLarge(limit));
        } else if (areTooManyParts(chunks.length, size)) {
          giveUp(inTooManyParts());
          this.isDropping = this.stopReceiving();
        } else if (!this.hold(size)) {
          giveUp(overloaded());
        } else {
          // Most bodies have one part, which is not kept for long.
          chunks.push(chunks.length === 0 ? chunk : compact(chunk));
        }
      };
      const giveUp = (reason = cutOff()) => {
        this.onCutOff = undefined;
        source.removeListener("data", collect);
        source.removeListener("end", end);
        chunks.length = 0;
        reject(reason);
      };
      const finish = () => {
        this.onCutOff = undefined;
        resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
      };
      const end = () => {
        this.bodyEnded();
        takeBodyTurn(this.connection, size, finish);
      };
      source.on("data", collect);
      source.on("end", end);
      this.onCutOff = giveUp;
    });
  }

  /** Notes how many bytes of the body are held for the call. Answers whether there is room for them. */
  hold(bytes: number): boolean {
    if (this.isLetGo || !this.connection.bodyBudget.change(this.held, bytes)) {
      return false;
    }
    this.held = bytes;
    return true;
  }

  /** Lets go of the body, when there is nobody left to read it. */
  private letGo(): void {
    this.onCutOff?.();
    if (this.held > 0) {
      this.connection.bodyBudget.change(this.held, 0);
      this.held = 0;
    }
    this.isLetGo = true;
  }

  /** Cuts off a sender that has its answer and does not hang up by itself. */
  cutOffBodySoon(): void {
    setTimeout(() => this.cutOffBody(), farewell).unref();
  }

  /** Called when a body has been read to its end. */
  protected bodyEnded(): void {}

  /** Lets go of what nobody will read of the body: a little more is dropped, then its sender is cut off. */
  dropBody(): void {
    this.letGo();
    if (this.isReceived || this.isDropping) {
      return;
    }
    this.isDropping = true;
    const { source } = this;
    let dropped = 0;
    source.removeAllListeners("readable");
    source.on("error", () => {});
    source.on("data", (chunk: Buffer) => {
      dropped += chunk.length + partCost;
      if (dropped > patience) {
        this.cutOffBody();
      }
    });
    source.on("end", () => this.bodyEnded());
    source.resume();
    this.cutOffSlowBody();
  }

  protected closed(): void {
    this.isClosed = true;
    this.letGo();
    if (!this.isAnswered) {
      this.call.cancellation.cancel(callerLeft());
    }
    this.onClose?.(this);
  }
}

const nothing = Buffer.alloc(0);

/** How long one that has its answer may take to hang up. Trailers are on their way meanwhile. */
const farewell = 1_000;

/** How much of a body is read and dropped, so that its sender gets to see the answer. */
const patience = 8 * 1024 * 1024;

/** For how many bytes more a part counts that is dropped. */
const partCost = 2 * 1024;

/** For a body that ends before it should. */
export function cutOff(): Problem {
  return new Problem("canceled", "The request was cut off before its end.");
}

const plainWord = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's own name for the request where it is a plain word and no key, otherwise a new one. */
function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && plainWord.test(given) && !mayHoldKey(given)
    ? given
    : randomUUID();
}

/** What a door answers when it has served a request. */
export type Served = "served";
export const served: Served = "served";

/** Serves a request, or answers `undefined` where it is for another. */
export type Door = (exchange: Exchange) => MaybePromise<Served> | undefined;
