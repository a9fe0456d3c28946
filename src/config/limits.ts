import { count, delay, type SettingReader, sizeUpTo } from "./parsers.js";

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

const million = 1_000_000;

export function readLimits(read: SettingReader): Limits {
  const limits = {
    headerSize: read("HEADER_LIMIT", sizeUpTo("64kb")) ?? 16 * 1024,
    headerCount: read("HEADER_COUNT_LIMIT", count("headers", 10, 1_000, 50)) ?? 100,
    bodyBudget: read("BODY_BUDGET", sizeUpTo("4096mb")) ?? 32 * 1024 * 1024,
    urlSize: read("URL_LIMIT", sizeUpTo("64kb")) ?? 8 * 1024,
    jsonDepth: read("JSON_DEPTH_LIMIT", count("levels", 8, 1_000, 32)) ?? 32,
    listItems: read("LIST_LIMIT", count("items", 100, 100_000, 1_000)) ?? 10_000,
    // Who sends too slowly is found up to two seconds late, and must be gone
    // within ten seconds of its headers and thirty of its body.
    headerTimeout: read("HEADER_TIMEOUT", delay) ?? 7_000,
    bodyTimeout: read("BODY_TIMEOUT", delay) ?? 25_000,
    idleTimeout: read("IDLE_TIMEOUT", delay) ?? 65_000,
    connections: read("CONNECTION_LIMIT", count("connections", 1, million, 5_000)) ?? 10_000,
    connectionsPerAddress:
      read("ADDRESS_CONNECTION_LIMIT", count("connections", 1, million, 500)) ?? 1_000,
    http2Streams: read("HTTP2_STREAM_LIMIT", count("calls at once", 1, 250, 100)) ?? 128,
    http2Frames: read("HTTP2_FRAME_LIMIT", count("frames", 10, million, 1_000)) ?? 500,
    streams: read("CALLER_STREAM_LIMIT", count("streams", 1, million, 100)) ?? 1_000,
  };
  if (limits.bodyTimeout < limits.headerTimeout) {
    read.problems.push("BODY_TIMEOUT must be at least as long as HEADER_TIMEOUT");
  }
  return Object.freeze(limits);
}
