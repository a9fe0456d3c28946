/** What a generator is to send, and for how long. */
export interface Load {
  readonly protocol: "rest" | "grpc";
  readonly port: number;
  readonly connections: number;
  /** The requests under way at the end are still waited for. */
  readonly seconds: number;
  readonly verb: "GET" | "POST";
  readonly path: string;
  /** The only status that is no failure: of HTTP, or of gRPC. */
  readonly status: number;
  /** Sent in turn, over and over. */
  readonly requests: readonly LoadRequest[];
  /** Sends each request once; the load then ends with the last of them. */
  readonly once?: boolean;
  readonly keepAnswers?: boolean;
}

export interface LoadRequest {
  readonly key: string;
  readonly body?: string;
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
