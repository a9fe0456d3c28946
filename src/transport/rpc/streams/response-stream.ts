import { coalescePerTick } from "../../../lib/event-loop.js";
import type { HeaderList } from "../../http/headers.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import type { ServerCall } from "../call.js";
import { contentType } from "../protocols/grpc.js";

/** Bytes that are buffered before they are written. */
const maxBufferedBytes = 64 * 1024;

/**
 * Writes the responses of a stream. Those of one tick are written together, as
 * single writes cost more than the messages. A client that reads nothing for
 * `writeTimeoutMs` milliseconds is disconnected, so that it cannot keep the stream
 * open forever.
 */
export class ResponseStream {
  private buffered: Buffer[] = [];
  private size = 0;
  private readonly flushLater = coalescePerTick(() => this.flush());
  private drained: Promise<void> | undefined;

  constructor(
    private readonly exchange: Http2Exchange,
    private readonly call: ServerCall,
    private readonly writeTimeoutMs: number,
  ) {}

  /** Sends a response. If it returns a promise, wait for it before the next one. */
  send(response: Buffer): Promise<void> | undefined {
    this.buffered.push(response);
    this.size += response.length;
    if (this.size >= maxBufferedBytes) {
      this.flush();
    } else {
      this.flushLater();
    }
    return this.drained;
  }

  finish(trailers: HeaderList): void {
    const { exchange, call } = this;
    this.flush();
    if (exchange.status === undefined && call.headerList.length === 0) {
      exchange.sendTrailersOnly([...contentType, ...trailers]);
    } else {
      this.begin();
      exchange.finishStream(trailers);
    }
  }

  private begin(): void {
    this.exchange.beginStream([...contentType, ...this.call.headerList]);
  }

  private flush(): void {
    const { buffered, exchange } = this;
    if (buffered.length === 0) {
      return;
    }
    this.buffered = [];
    this.size = 0;
    this.begin();
    const bytes = buffered.length === 1 ? (buffered[0] as Buffer) : Buffer.concat(buffered);
    if (!exchange.writeStream(bytes)) {
      this.drained ??= this.waitForDrain();
    }
  }

  private waitForDrain(): Promise<void> {
    const { exchange } = this;
    const { stream } = exchange;
    return new Promise((resolve) => {
      const timer = setTimeout(() => exchange.abortResponse(), this.writeTimeoutMs);
      const resume = () => {
        clearTimeout(timer);
        stream.removeListener("drain", resume);
        stream.removeListener("close", resume);
        this.drained = undefined;
        resolve();
      };
      stream.on("drain", resume);
      stream.on("close", resume);
    });
  }
}
