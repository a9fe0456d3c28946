import type { Message } from "@bufbuild/protobuf";
import { overloaded, requestTimeout } from "../../../errors.js";
import { compact } from "../../../lib/bytes.js";
import type { Timeout } from "../../../lib/timeout.js";
import { hasTooManyChunks, requestAborted, tooManyChunks } from "../../http/body-limits.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import {
  checkPrefix,
  envelopeSize,
  toDecodeProblem,
  truncatedMessage,
} from "../protocols/protocol.js";

/** Messages, and bytes of them, that may be unread before the stream is paused. */
const maxUnread = 256;
const maxUnreadBytes = 256 * 1024;

interface RequestStreamOptions {
  /** The message limit in bytes. */
  readonly limit: number;
  /** Whether the client sends exactly one message. */
  readonly isSingle: boolean;
}

interface Waiter {
  resolve(result: IteratorResult<Message>): void;
  reject(reason: unknown): void;
}

/**
 * The messages of a request stream. Reading starts with the first call of `next`.
 * A stream may be silent, but a message that has started must arrive in time.
 */
export class RequestStream implements AsyncIterableIterator<Message> {
  private readonly messages: Buffer[] = [];
  private messageBytes = 0;
  private readonly chunks: Buffer[] = [];
  private chunkBytes = 0;
  /** Bytes that are needed to continue parsing. */
  private needed = envelopeSize;
  private waiter: Waiter | undefined;
  private end: { readonly reason?: unknown } | undefined;
  private isStarted = false;
  private timeout: Timeout | undefined;

  constructor(
    private readonly exchange: Http2Exchange,
    private readonly decode: (bytes: Buffer) => Message,
    private readonly options: RequestStreamOptions,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Message>> {
    this.start();
    const { messages, exchange } = this;
    const bytes = messages.shift();
    if (!bytes) {
      return this.end ? this.ended(this.end) : this.wait();
    }
    this.messageBytes -= bytes.length;
    this.reserveMemory();
    if (messages.length < maxUnread / 2 && this.messageBytes < maxUnreadBytes / 2) {
      exchange.stream.resume();
    }
    return this.read(bytes);
  }

  async return(): Promise<IteratorResult<Message>> {
    this.messages.length = 0;
    this.messageBytes = 0;
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
      this.finish({ reason: requestAborted() });
      return;
    }
    exchange.sendContinue();
    if (this.options.isSingle) {
      this.startTimeout();
    }
    const end = () => this.finish({ reason: requestAborted() });
    exchange.onAbort = end;
    exchange.stream.on("data", (chunk: Buffer) => this.onData(chunk));
    exchange.stream.on("end", () =>
      this.finish(this.chunkBytes > 0 ? { reason: truncatedMessage() } : {}),
    );
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
      throw toDecodeProblem(reason, this.options.limit);
    }
  }

  private onData(chunk: Buffer): void {
    if (this.end) {
      return;
    }
    this.chunks.push(this.chunks.length === 0 ? chunk : compact(chunk));
    this.chunkBytes += chunk.length;
    if (this.chunkBytes >= this.needed) {
      this.split(this.chunks.length === 1 ? chunk : Buffer.concat(this.chunks));
    }
    if (hasTooManyChunks(this.chunks.length, this.chunkBytes)) {
      this.finish({ reason: tooManyChunks() });
      return;
    }
    if (!this.reserveMemory()) {
      this.finish({ reason: overloaded() });
      return;
    }
    const isFull = this.messages.length >= maxUnread || this.messageBytes >= maxUnreadBytes;
    if (isFull) {
      this.exchange.stream.pause();
    }
    if (!this.options.isSingle) {
      this.updateTimeout(this.chunkBytes > 0 && !isFull);
    }
  }

  /** Reserves memory for the unread messages and the incomplete one. Returns whether the budget allows it. */
  private reserveMemory(): boolean {
    return this.exchange.reserveMemory(this.messageBytes + this.chunkBytes);
  }

  /** Starts or cancels the timeout of the incomplete message. */
  private updateTimeout(isIncomplete: boolean): void {
    if (!isIncomplete) {
      this.timeout?.cancel();
      this.timeout = undefined;
    } else if (!this.timeout) {
      this.startTimeout();
    }
  }

  private startTimeout(): void {
    const expire = () => this.finish({ reason: requestTimeout() });
    this.timeout = this.exchange.bodyTimeouts.start(expire);
  }

  /** Splits off the complete messages and keeps the rest. */
  private split(bytes: Buffer): void {
    let at = 0;
    this.needed = envelopeSize;
    while (bytes.length - at >= this.needed) {
      const length = bytes.readUInt32BE(at + 1);
      const problem = checkPrefix(bytes[at] as number, length, this.options.limit);
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
    this.chunks.length = 0;
    this.chunkBytes = bytes.length - at;
    if (this.chunkBytes > 0) {
      this.chunks.push(bytes.subarray(at));
    }
  }

  private deliver(bytes: Buffer): void {
    const { waiter } = this;
    if (waiter) {
      this.waiter = undefined;
      this.read(bytes).then(waiter.resolve, waiter.reject);
    } else {
      this.messages.push(bytes);
      this.messageBytes += bytes.length;
    }
  }

  private finish(end: { readonly reason?: unknown }): void {
    if (this.end) {
      return;
    }
    this.end = end;
    this.chunks.length = 0;
    this.chunkBytes = 0;
    this.reserveMemory();
    this.timeout?.cancel();
    this.exchange.onAbort = undefined;
    const { waiter } = this;
    this.waiter = undefined;
    if (waiter) {
      this.ended(end).then(waiter.resolve, waiter.reject);
    }
  }
}
