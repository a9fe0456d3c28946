import type { Limits } from "./limits.js";
import { count, delay, sizeUpTo } from "./setting-parsers.js";
import type { SettingReader } from "./setting-reader.js";

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
