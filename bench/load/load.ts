/** What a generator is to send, and for how long. */
export interface Load {
  /** `stream` is gRPC too: one call on each connection, through which all requests go. */
  readonly protocol: "http1" | "http2" | "grpc" | "stream";
  readonly port: number;
  readonly connections: number;
  /** The requests under way at the end are still waited for. */
  readonly seconds: number;
  readonly verb: "GET" | "POST" | "PUT";
  readonly path: string;
  /** Of the bodies, where they are not JSON. */
  readonly contentType?: string;
  /** The only status that is no failure: of HTTP, or of gRPC. */
  readonly status: number;
  /** What an answer must hold beside its status, as a regular expression. */
  readonly mustHold?: string;
  /** Sent in turn, over and over. */
  readonly requests: readonly LoadRequest[];
  /** Sends each request once; the load then ends with the last of them. */
  readonly once?: boolean;
  readonly keepAnswers?: boolean;
  /** Starts so many requests each second, whether those before are answered or not. */
  readonly rate?: number;
}

export interface LoadRequest {
  readonly key: string;
  /** Where it is another one than the load's. */
  readonly path?: string;
  readonly body?: string | Uint8Array;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** The bodies of the answers, where they were to be kept. */
  readonly answers: readonly string[];
}

export const keyHeader = "svc-api-key";
export const loadHost = "127.0.0.1";

/** The same load of a single request. */
export function onceOf(load: Load): Load {
  const { rate: _, ...rest } = load;
  return { ...rest, connections: 1, requests: load.requests.slice(0, 1), once: true };
}

/** Sends single requests over connections that stay open. */
export interface LoadClient {
  /**
   * Opens all connections. A busy server accepts only one with each turn of its
   * event loop, which would be counted as the latency of requests.
   */
  open(): Promise<void>;
  /** Resolves with the body of the answer; any other status than the load's throws. */
  send(request: LoadRequest, connection: number): Promise<string>;
  close(): void;
}

/** What was seen of a load while it lasted. */
export interface Seen {
  /** In milliseconds. */
  readonly latencies: number[];
  readonly answers: string[];
}
