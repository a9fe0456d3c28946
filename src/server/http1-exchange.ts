import type { IncomingMessage, ServerResponse } from "node:http";
import { Exchange, type HeaderList } from "./exchange.js";

/** A request and its answer over HTTP/1.1. */
export class Http1Exchange extends Exchange {
  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    super(request.method ?? "", request.url ?? "/", request.headers);
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

  native() {
    const { request, response } = this;
    const headers = this.pageHeaders();
    for (let at = 0; at < headers.length; at += 2) {
      response.setHeader(headers[at] as string, headers[at + 1] as string);
    }
    return { request, response };
  }
}
