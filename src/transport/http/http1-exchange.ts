import type { IncomingMessage, ServerResponse } from "node:http";
import { certificateNamesOf } from "./client-certificate.js";
import { Exchange, type ExchangeContext } from "./exchange.js";
import type { HeaderList } from "./headers.js";
import type { Http1Connection } from "./http1-connection.js";

export class Http1Exchange extends Exchange {
  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly connection: Http1Connection,
    context: ExchangeContext,
  ) {
    super(request.method ?? "", request.url ?? "/", request.headers, context);
  }

  get headerCount(): number {
    return this.rawHeaders.length / 2;
  }

  get headerSize(): number {
    return 0;
  }

  get address(): string {
    return this.request.socket.remoteAddress ?? "";
  }

  get certificateNames(): readonly string[] {
    return certificateNamesOf(this.request.socket);
  }

  get isClosed(): boolean {
    // Node marks only the response that it is sending, not those of requests behind it.
    return this.response.destroyed || this.request.socket.destroyed;
  }

  watchClose(): void {
    this.response.on("close", () => this.closed());
  }

  get version(): string {
    return this.request.httpVersion;
  }

  protected get rawHeaders(): HeaderList {
    return this.request.rawHeaders;
  }

  protected get bodySource(): IncomingMessage {
    return this.request;
  }

  get hasBody(): boolean {
    const { "content-length": length = "0", "transfer-encoding": encoding } = this.headers;
    return length !== "0" || encoding !== undefined;
  }

  protected get isBodyReceived(): boolean {
    return this.request.complete || this.request.destroyed || !this.hasBody;
  }

  send(status: number, headers: HeaderList, body: Buffer | string = ""): void {
    const { response } = this;
    if (this.status !== undefined || response.headersSent || response.destroyed) {
      this.releaseResponse();
      return;
    }
    this.status = status;
    this.isResponseSent = true;
    this.closeConnectionIfLast();
    const all = this.browserHeaders();
    for (const text of headers) {
      all.push(text);
    }
    const hasNoBody = status === 204 || status === 304;
    if (!hasNoBody) {
      all.push("content-length", String(Buffer.byteLength(body)));
    }
    if (this.countResponse(body.length)) {
      response.once("close", () => this.releaseResponse());
    }
    response.writeHead(status, all);
    response.end(hasNoBody || this.method === "HEAD" ? undefined : body);
  }

  sendContinue(): void {
    if (this.expectsContinue && this.version !== "1.0" && !this.response.destroyed) {
      this.response.writeContinue();
    }
  }

  abortBody(): void {
    if (!this.request.complete) {
      this.request.destroy();
    }
  }

  /** Node enforces `requestTimeout` itself. */
  startBodyTimeout(): void {}

  protected startResponseTimeout(): void {
    // If nothing is buffered, the kernel has accepted the whole response.
    if (this.request.socket.writableLength > 0) {
      this.connection.startReadTimeout(this.context.responseTimeouts);
    }
  }

  abortResponse(): void {
    this.request.socket.destroy();
  }

  /** Closes the connection after this response if no other should follow. */
  private closeConnectionIfLast(): void {
    if (this.isLastRequest || this.isTimedOut) {
      this.addHeader("connection", "close");
    }
  }

  /** Pipelined requests after this one need responses, too. */
  private get isLastRequest(): boolean {
    return this.context.isClosing() && this.connection.isLast(this.response);
  }

  /** Whether the call timed out while its body was being read. The rest of it may never arrive. */
  private get isTimedOut(): boolean {
    return (
      this.onAbort !== undefined && !this.isBodyReceived && this.cancellation.reason !== undefined
    );
  }

  native() {
    const { request, response } = this;
    this.closeConnectionIfLast();
    const headers = this.browserHeaders();
    for (let index = 0; index < headers.length; index += 2) {
      response.setHeader(headers[index] as string, headers[index + 1] as string);
    }
    return { request, response };
  }
}
