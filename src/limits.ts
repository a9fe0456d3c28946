/** How much of everything one caller, one connection or all of them may ask for. Times are in milliseconds. */
export interface Limits {
  /** Bytes of all headers of a request. */
  readonly headerSize: number;
  readonly headerCount: number;
  /** Bytes that all bodies hold which have not been answered. */
  readonly bodyBudget: number;
  /** Bytes of a path with its query. */
  readonly urlSize: number;
  /** Levels of JSON within each other. */
  readonly jsonDepth: number;
  /** Items of all lists of a request together, those in the items of others too. */
  readonly listItems: number;
  /** How long the headers of a request may take, and a new connection until its first request. */
  readonly headerTimeout: number;
  /** How long a request may take to arrive, and an answer that is not being read may wait. */
  readonly bodyTimeout: number;
  /** How long a connection may stay without a request. */
  readonly idleTimeout: number;
  /** Connections at once to a process. */
  readonly connections: number;
  /** Connections at once from one address. */
  readonly connectionsPerAddress: number;
  /** Calls at once on a connection of HTTP/2. */
  readonly http2Streams: number;
  /** Frames of HTTP/2 that serve no call, and calls that are abandoned, within ten seconds on a connection. */
  readonly http2Frames: number;
  /** Streams at once of one caller. */
  readonly streams: number;
}
