import { constants } from "node:http2";
import { coalescePerTick } from "../../../lib/event-loop.js";
import type { HeaderList } from "../../http/headers.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import type { CallRequest } from "../call.js";
import { contentType } from "../protocols/grpc.js";

/** How many bytes of answers are gathered before they are sent. */
const mostGathered = 64 * 1024;

/**
 * Sends the answers of a stream. Those that are there in one turn of the event
 * loop go out together: to write each by itself would cost more than to make
 * it. A caller that takes nothing for `patience` milliseconds is cut off: it
 * would hold on to the stream for ever.
 */
export class AnswerSink {
  private gathered: Buffer[] = [];
  private size = 0;
  private readonly flushLater = coalescePerTick(() => this.flush());
  private taken: Promise<void> | undefined;

  constructor(
    private readonly exchange: Http2Exchange,
    private readonly call: CallRequest,
    private readonly patience: number,
  ) {}

  /** Sends an answer. Where a promise is returned, it is to be waited for before the next. */
  send(answer: Buffer): Promise<void> | undefined {
    this.gathered.push(answer);
    this.size += answer.length;
    if (this.size >= mostGathered) {
      this.flush();
    } else {
      this.flushLater();
    }
    return this.taken;
  }

  /** Ends the stream with its trailers. */
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
    const { gathered, exchange } = this;
    if (gathered.length === 0) {
      return;
    }
    this.gathered = [];
    this.size = 0;
    this.begin();
    const bytes = gathered.length === 1 ? (gathered[0] as Buffer) : Buffer.concat(gathered);
    if (!exchange.writeStream(bytes)) {
      this.taken ??= this.untilTaken();
    }
  }

  private untilTaken(): Promise<void> {
    const { stream } = this.exchange;
    return new Promise((resolve) => {
      const cutOff = () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      const timer = setTimeout(cutOff, this.patience);
      const goOn = () => {
        clearTimeout(timer);
        stream.removeListener("drain", goOn);
        stream.removeListener("close", goOn);
        this.taken = undefined;
        resolve();
      };
      stream.on("drain", goOn);
      stream.on("close", goOn);
    });
  }
}
