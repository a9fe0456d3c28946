import { send } from "../http/http.js";
import { until } from "../until.js";
import type { TestServer } from "./server.js";

/** What a server has logged by the time that it has logged another request, which is left out. */
export async function flushedLogLines(server: TestServer): Promise<Record<string, unknown>[]> {
  const { headers } = await send(server, "/healthz");
  const isOfNext = (line: Record<string, unknown>) => line.request_id === headers["x-request-id"];
  await until(async () => server.logs.some(isOfNext));
  return server.logs.filter((line) => !isOfNext(line));
}
