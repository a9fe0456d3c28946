import { describe, expect, it } from "@jest/globals";
import { createColors } from "../../src/lib/terminal.js";
import { formatLogLine } from "../../src/telemetry/log-format.js";

const time = new Date(2026, 0, 31, 9, 5, 7).toISOString();
const format = (entry: object, isColored = false) =>
  formatLogLine(JSON.stringify({ level: "info", time, ...entry }), createColors(isColored));

describe("a log line on a terminal", () => {
  it("shows time, level, message and fields", () => {
    expect(format({ store: "embedded", msg: "listening at http://localhost:8080" })).toBe(
      "09:05:07  INFO   listening at http://localhost:8080  store=embedded",
    );
  });

  it("shows a successful request in short, and all fields of a failed one", () => {
    const call = {
      request_id: "r-1",
      method: "latchkey.v1.AccessService/WhoAmI",
      protocol: "rest",
      duration_ms: 0.571,
    };
    expect(format({ ...call, code: "ok", application_id: "a-1" })).toBe(
      "09:05:07  INFO   AccessService/WhoAmI  ok  0.6 ms",
    );
    expect(format({ ...call, code: "unauthenticated" })).toBe(
      "09:05:07  INFO   AccessService/WhoAmI  unauthenticated  0.6 ms  request_id=r-1  protocol=rest",
    );
    const page = { method: "GET", path: "/console", status: 200, duration_ms: 12.34 };
    expect(format({ request_id: "r-2", ...page })).toBe(
      "09:05:07  INFO   GET /console  200  12.3 ms",
    );
  });

  it("shows the stack of an error on lines of its own", () => {
    const err = { type: "Error", message: "boom", stack: "Error: boom\n    at here" };
    expect(format({ level: "error", msg: "failed", err })).toBe(
      "09:05:07  ERROR  failed\n    Error: boom\n        at here",
    );
  });

  it("escapes characters that control the terminal", () => {
    const line = format({ method: "GET\u001b[2J", path: "/\u202e", status: 404, duration_ms: 1 });
    expect(line).toContain("GET\\u{1b}[2J /\\u{202e}");
  });

  it("is coloured by its outcome", () => {
    expect(format({ level: "warn", msg: "careful" }, true)).toContain("\u001b[33mWARN \u001b[39m");
    const call = { method: "GET", path: "/a", duration_ms: 1 };
    expect(format({ ...call, status: 200 }, true)).toContain("\u001b[32m200\u001b[39m");
    expect(format({ ...call, status: 404 }, true)).toContain("\u001b[33m404\u001b[39m");
  });

  it("is unchanged if it is not JSON", () => {
    expect(formatLogLine("{not JSON}", createColors(false))).toBe("{not JSON}");
  });
});
