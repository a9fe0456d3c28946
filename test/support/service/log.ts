import { send } from "../http/http.js";
import { until } from "../until.js";
import type { TestServer } from "./server.js";

/** Waits until the server has logged another request and returns the earlier lines. */
export async function flushedLogLines(server: TestServer): Promise<Record<string, unknown>[]> {
  const { headers } = await send(server, "/healthz");
  const isMarker = (line: Record<string, unknown>) => line.request_id === headers["x-request-id"];
  await until(async () => server.logs.some(isMarker));
  return server.logs.filter((line) => !isMarker(line));
}

/** Waits until the server has logged a call with one of these codes. */
export function untilLogged({ logs }: TestServer, ...codes: string[]): Promise<void> {
  return until(async () => logs.some(({ code }) => codes.includes(String(code))));
}

/** Whether a line is a warning or an error. */
export function isWarning({ level }: Record<string, unknown>): boolean {
  return level !== "info" && level !== "debug";
}
