import { problemOf } from "../../client/problem.js";
import { barText, startLiveLine } from "../../live-line.js";
import { isLoopback } from "../loopback.js";
import { confirm } from "../prompt.js";
import { createServiceClient, type ServiceClient } from "../service-client.js";
import { detailsText, type Look } from "../table.js";
import { type Calling, type CallingFlags, withClient } from "../with-client.js";
import type { BenchMethod } from "./methods.js";
import { type Summary, summarize } from "./summary.js";

interface Flags extends CallingFlags {
  readonly method: BenchMethod;
  readonly seconds: number;
  readonly connections: number;
  readonly yes?: boolean;
}

/** Calls a service as fast as it answers, for a while, and tells how quick it was. */
export async function benchCommand(flags: Flags): Promise<void> {
  const { method, seconds, connections } = flags;
  await withClient(flags, async (calling) => {
    const { connection, output } = calling;
    const { hostname, host } = new URL(connection.url);
    if (!isLoopback(hostname)) {
      await confirm(
        `${host} is another machine, which will be under load for ${seconds} s.`,
        flags,
      );
    }
    await ask(calling.client, calling, method);
    const summary = await measure(calling, flags);
    output.showValue({ url: connection.url, method, connections, ...summary }, (look) =>
      summaryText(summary, flags, connection.url, look),
    );
  });
}

type Asking = Pick<Calling, "connection" | "call">;

/** One call. What it answers is of no interest; one that is refused throws. */
async function ask(
  client: ServiceClient,
  { connection, call }: Asking,
  method: BenchMethod,
): Promise<void> {
  if (method === "whoami") {
    await client.access.whoAmI({}, call);
  } else {
    await client.access.checkAccess({ key: connection.key, permission: "access:check" }, call);
  }
}

async function measure(asking: Asking, { method, seconds, connections }: Flags): Promise<Summary> {
  const latencies: number[] = [];
  const errors = new Map<string, number>();
  const start = performance.now();
  const end = start + seconds * 1_000;
  const line = startLiveLine({
    stream: process.stderr,
    tellsUnwatched: false,
    draw() {
      const share = (performance.now() - start) / (end - start);
      return `${barText(share)} ${latencies.length.toLocaleString("en-US")} calls`;
    },
  });

  async function work(): Promise<void> {
    const client = createServiceClient(asking.connection);
    try {
      while (performance.now() < end) {
        const begun = performance.now();
        try {
          await ask(client, asking, method);
          latencies.push(performance.now() - begun);
        } catch (error) {
          const { code = "lost" } = problemOf(error);
          errors.set(code, (errors.get(code) ?? 0) + 1);
          await new Promise((resolve) => setTimeout(resolve, pauseAfterError));
        }
      }
    } finally {
      client.close();
    }
  }

  try {
    await Promise.all(Array.from({ length: connections }, work));
  } finally {
    line.stop();
  }
  return summarize(latencies, errors, performance.now() - start);
}

/** Milliseconds. A service that is away is not to be called in a tight loop. */
const pauseAfterError = 10;

function summaryText(summary: Summary, flags: Flags, url: string, look: Look): string {
  const { calls, calls_per_second, latency_ms, errors } = summary;
  const { connections, method } = flags;
  const failed = Object.entries(errors).map(([code, count]) => `${count} ${code}`);
  return detailsText(
    [
      ["service", url],
      ["calls", `${calls} of ${method}, over ${connections} connections`],
      ["calls/s", String(calls_per_second)],
      ...Object.entries(latency_ms).map(([name, value]) => [name, `${value} ms`] as const),
      ["errors", failed.join(", ") || "none"],
    ],
    look,
  );
}
