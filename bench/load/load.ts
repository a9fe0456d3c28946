/** The requests that a load generator sends. */
export interface Load {
  /** `stream` is gRPC with one call per connection, which carries all requests. */
  readonly protocol: "http1" | "http2" | "grpc" | "stream";
  readonly port: number;
  readonly connections: number;
  readonly verb: "GET" | "POST" | "PUT";
  readonly path: string;
  /** The content type of the bodies, `application/json` by default. */
  readonly contentType?: string;
  /** The expected HTTP or gRPC status. Any other fails the load. */
  readonly status: number;
  /** A regular expression that response bodies must match. */
  readonly bodyPattern?: string;
  /** Sent in a loop. */
  readonly requests: readonly LoadRequest[];
  /** Sends each request once and ends the load after the last one. */
  readonly once?: boolean;
  readonly keepResponses?: boolean;
  /** Requests per second, sent without waiting for earlier responses (open loop). */
  readonly rate?: number;
}

export interface LoadRequest {
  readonly key: string;
  /** Other headers, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Overrides the path of the load. */
  readonly path?: string;
  readonly body?: string | Uint8Array;
}

/** Sends a load to a server and measures what it costs. */
export interface LoadTask {
  readonly load: Load;
  /** Requests in flight at the end are awaited. */
  readonly seconds: number;
  /** The process id of the server. */
  readonly pid: number;
  readonly databasePid?: number | undefined;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** The CPU time of the server. `NaN` if it cannot be measured. */
  readonly cpuSeconds: number;
  /** The CPU time of the database. `NaN` if there is none. */
  readonly databaseCpuSeconds: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** The response bodies, if `keepResponses` was set. */
  readonly responses: readonly string[];
}

export const keyHeader = "svc-api-key";
export const loadHost = "127.0.0.1";

/** Sends single requests over persistent connections. */
export interface LoadClient {
  /**
   * Opens all connections before the load starts. A busy server accepts one per
   * tick of its event loop, which would count as latency.
   */
  open(): Promise<void>;
  /** Resolves with the response body. Throws on an unexpected status or body. */
  send(request: LoadRequest, connection: number): Promise<string>;
  close(): void;
}
