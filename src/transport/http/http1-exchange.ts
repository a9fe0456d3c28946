import type { IncomingMessage, ServerResponse } from "node:http";
import type { Connection } from "../listener/connection.js";
import { Exchange } from "./exchange.js";
import type { HeaderList } from "./headers.js";

/** A request and its answer over HTTP/1.1. */
export class Http1Exchange extends Exchange {
  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    connection: Connection,
    /** Which of the requests of its connection it is. */
    private readonly number: number,
    /** Whether connections should end with their last answer. */
    private readonly isClosing: () => boolean,
  ) {
    super(request.method ?? "", request.url ?? "/", request.headers, connection);
  }

  get headerCount(): number {
    return this.request.rawHeaders.length / 2;
  }

  get headerSize(): number {
    return 0;
  }

  get address(): string {
    return this.request.socket.remoteAddress ?? "";
  }

  protected watchClose(): void {
    this.response.on("close", () => this.closed());
  }

  get version(): string {
    return this.request.httpVersion;
  }

  /** Node takes the first of them. */
  get hasSeveralHosts(): boolean {
    const { rawHeaders } = this.request;
    let hosts = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] as string;
      if (name.length === "host".length && name.toLowerCase() === "host") {
        hosts++;
      }
    }
    return hosts > 1;
  }

  protected get source(): IncomingMessage {
    return this.request;
  }

  get hasBody(): boolean {
    const { "content-length": length = "0", "transfer-encoding": encoding } = this.headers;
    return length !== "0" || encoding !== undefined;
  }

  protected get isReceived(): boolean {
    return this.request.complete || this.request.destroyed || !this.hasBody;
  }

  send(status: number, headers: HeaderList, body: Buffer | string = ""): void {
    const { response } = this;
    if (this.status !== undefined || response.headersSent || response.destroyed) {
      return;
    }
    this.status = status;
    this.isAnswered = true;
    const all = this.pageHeaders();
    for (const text of headers) {
      all.push(text);
    }
    if (status !== 204) {
      all.push("content-length", String(Buffer.byteLength(body)));
    }
    this.endConnectionIfLast();
    response.writeHead(status, all);
    response.end(status === 204 || this.method === "HEAD" ? undefined : body);
  }

  askForBody(): void {
    if (this.isAskedFirst && this.version !== "1.0" && !this.response.destroyed) {
      this.response.writeContinue();
    }
  }

  cutOffBody(): void {
    if (!this.request.complete) {
      this.request.destroy();
    }
  }

  /** Node sees to that. */
  cutOffSlowBody(): void {}

  protected stopReceiving(): boolean {
    this.request.pause();
    this.connection.stopReading();
    this.response.shouldKeepAlive = false;
    return true;
  }

  /** Has the connection end with this answer where no other should follow. */
  private endConnectionIfLast(): void {
    if (this.isLast || this.isLate) {
      this.response.shouldKeepAlive = false;
    }
  }

  /** Requests that came behind this one want answers, too. */
  private get isLast(): boolean {
    return this.isClosing() && this.connection.received === this.number;
  }

  /** Whether the time of the call is up while its body is being read: nobody knows when another would come. */
  private get isLate(): boolean {
    return (
      this.onCutOff !== undefined && !this.isReceived && this.call.cancellation.reason !== undefined
    );
  }

  native() {
    const { request, response } = this;
    this.endConnectionIfLast();
    const headers = this.pageHeaders();
    for (let at = 0; at < headers.length; at += 2) {
      response.setHeader(headers[at] as string, headers[at + 1] as string);
    }
    return { request, response };
  }
}
