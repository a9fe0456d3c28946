import type { Message } from "@bufbuild/protobuf";
import { arrivesTooSlowly, overloaded, unreadable } from "../../../errors.js";
import { compact } from "../../../lib/bytes.js";
import type { Timeout } from "../../../lib/timeout.js";
import { areTooManyParts, inTooManyParts } from "../../http/body.js";
import { cutOff } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { endsTooEarly, envelopeSize, problemWith } from "../protocols/protocol.js";

/** How many messages, and bytes of them, may wait to be taken before their sender is slowed down. */
const mostWaiting = 256;
const mostWaitingBytes = 256 * 1024;

interface MessageSourceOptions {
  /** How long a message may be. */
  readonly limit: number;
  /** Whether there is one message, after which the stream is to end. */
  readonly isSingle: boolean;
}

interface Waiter {
  resolve(result: IteratorResult<Message>): void;
  reject(reason: unknown): void;
}

/**
 * The messages that arrive in a stream. Nothing is read before the first of
 * them is asked for. A stream may be quiet, but a message that has begun must
 * end in time.
 */
export class MessageSource implements AsyncIterableIterator<Message> {
  private readonly arrived: Buffer[] = [];
  private waitingBytes = 0;
  private readonly parts: Buffer[] = [];
  private size = 0;
  /** How many bytes there must be to go on. */
  private needed = envelopeSize;
  private waiter: Waiter | undefined;
  private end: { readonly reason?: unknown } | undefined;
  private isStarted = false;
  private timeout: Timeout | undefined;

  constructor(
    private readonly exchange: Http2Exchange,
    private readonly decode: (bytes: Buffer) => Message,
    private readonly options: MessageSourceOptions,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Message>> {
    this.start();
    const { arrived, exchange } = this;
    const bytes = arrived.shift();
    if (!bytes) {
      return this.end ? this.ended(this.end) : this.wait();
    }
    this.waitingBytes -= bytes.length;
    this.hold();
    if (arrived.length < mostWaiting / 2 && this.waitingBytes < mostWaitingBytes / 2) {
      exchange.stream.resume();
    }
    return this.read(bytes);
  }

  async return(): Promise<IteratorResult<Message>> {
    this.arrived.length = 0;
    this.waitingBytes = 0;
    this.finish({});
    return { done: true, value: undefined };
  }

  private start(): void {
    if (this.isStarted) {
      return;
    }
    this.isStarted = true;
    const { exchange } = this;
    if (!exchange.hasBody) {
      this.finish({});
      return;
    }
    if (exchange.isClosed) {
      this.finish({ reason: cutOff() });
      return;
    }
    exchange.askForBody();
    if (this.options.isSingle) {
      this.startTimeout();
    }
    const end = () => this.finish({ reason: cutOff() });
    exchange.onCutOff = end;
    exchange.stream.on("data", (chunk: Buffer) => this.take(chunk));
    exchange.stream.on("end", () => this.finish(this.size > 0 ? { reason: endsTooEarly() } : {}));
  }

  private wait(): Promise<IteratorResult<Message>> {
    return new Promise((resolve, reject) => {
      this.waiter = { resolve, reject };
    });
  }

  private ended(end: { readonly reason?: unknown }): Promise<IteratorResult<Message>> {
    return "reason" in end
      ? Promise.reject(end.reason)
      : Promise.resolve({ done: true, value: undefined });
  }

  private async read(bytes: Buffer): Promise<IteratorResult<Message>> {
    try {
      return { done: false, value: this.decode(bytes) };
    } catch (reason) {
      throw unreadable(reason, this.options.limit);
    }
  }

  private take(chunk: Buffer): void {
    if (this.end) {
      return;
    }
    this.parts.push(this.parts.length === 0 ? chunk : compact(chunk));
    this.size += chunk.length;
    if (this.size >= this.needed) {
      this.split(this.parts.length === 1 ? chunk : Buffer.concat(this.parts));
    }
    if (areTooManyParts(this.parts.length, this.size)) {
      this.finish({ reason: inTooManyParts() });
      return;
    }
    if (!this.hold()) {
      this.finish({ reason: overloaded() });
      return;
    }
    const isFull = this.arrived.length >= mostWaiting || this.waitingBytes >= mostWaitingBytes;
    if (isFull) {
      this.exchange.stream.pause();
    }
    if (!this.options.isSingle) {
      this.keepTime(this.size > 0 && !isFull);
    }
  }

  /** Notes what is held: messages that wait, and what has come of the next. Answers whether there is room for it. */
  private hold(): boolean {
    return this.exchange.hold(this.waitingBytes + this.size);
  }

  /** Gives a message that has begun its time. */
  private keepTime(hasBegun: boolean): void {
    if (!hasBegun) {
      this.timeout?.cancel();
      this.timeout = undefined;
    } else if (!this.timeout) {
      this.startTimeout();
    }
  }

  private startTimeout(): void {
    const expire = () => this.finish({ reason: arrivesTooSlowly() });
    this.timeout = this.exchange.bodyTimeouts.start(expire);
  }

  /** Takes the whole messages out of what has arrived, and keeps the rest. */
  private split(bytes: Buffer): void {
    let at = 0;
    this.needed = envelopeSize;
    while (bytes.length - at >= this.needed) {
      const length = bytes.readUInt32BE(at + 1);
      const problem = problemWith(bytes[at] as number, length, this.options.limit);
      if (problem) {
        this.finish({ reason: problem });
        return;
      }
      const end = at + envelopeSize + length;
      if (end > bytes.length) {
        this.needed = end - at;
        break;
      }
      this.deliver(bytes.subarray(at + envelopeSize, end));
      at = end;
    }
    this.parts.length = 0;
    this.size = bytes.length - at;
    if (this.size > 0) {
      this.parts.push(bytes.subarray(at));
    }
  }

  private deliver(bytes: Buffer): void {
    const { waiter } = this;
    if (waiter) {
      this.waiter = undefined;
      this.read(bytes).then(waiter.resolve, waiter.reject);
    } else {
      this.arrived.push(bytes);
      this.waitingBytes += bytes.length;
    }
  }

  private finish(end: { readonly reason?: unknown }): void {
    if (this.end) {
      return;
    }
    this.end = end;
    this.parts.length = 0;
    this.size = 0;
    this.hold();
    this.timeout?.cancel();
    this.exchange.onCutOff = undefined;
    const { waiter } = this;
    this.waiter = undefined;
    if (waiter) {
      this.ended(end).then(waiter.resolve, waiter.reject);
    }
  }
}
