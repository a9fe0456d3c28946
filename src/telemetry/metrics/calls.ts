import type { DescMethod } from "@bufbuild/protobuf";
import { Gauge, type Registry } from "prom-client";
import type { ProtocolName } from "../../call.js";
import { methodName } from "../../contract/methods.js";
import { memoize } from "../../lib/cache.js";
import { createHotCounter, DurationHistogram } from "./hot-path.js";

/** The metrics of one method. */
export interface MethodCounts {
  begin(): void;
  /** Records the end of a call with `ok` or the code of its problem. */
  end(protocol: ProtocolName, code: string, milliseconds: number): void;
}

/** Returns the metrics of a method. */
export type CallMetrics = (method: DescMethod) => MethodCounts;

/** Exported with 0 before they first occur, so that `rate()` sees the first increase. */
const alwaysExported = ["ok", "internal", "store_unavailable"];

export function createCallMetrics(registry: Registry): CallMetrics {
  const registers = [registry];
  const addRequests = createHotCounter({
    name: "latchkey_requests_total",
    help: "Completed calls by method, protocol and code (ok, or the code of the error).",
    labelNames: ["method", "protocol", "code"],
    registers,
  });
  const durations = new DurationHistogram({
    name: "latchkey_request_duration_seconds",
    help: "Duration of unary calls by method.",
    labelNames: ["method"],
    registers,
  });
  const inFlight = new Gauge({
    name: "latchkey_requests_in_flight",
    help: "Unary calls in progress.",
    registers,
  });
  const streams = new Gauge({
    name: "latchkey_streams_open",
    help: "Open streams by method.",
    labelNames: ["method"],
    registers,
  });

  function createRequestCounter(method: string): (protocol: ProtocolName, code: string) => void {
    const seriesOf = memoize((protocol: ProtocolName) => {
      const series = memoize((code: string) => addRequests({ method, protocol, code }));
      alwaysExported.forEach(series);
      return series;
    });
    return (protocol, code) => {
      seriesOf(protocol)(code).value++;
    };
  }

  return memoize((described) => {
    const method = methodName(described);
    const count = createRequestCounter(method);
    if (described.methodKind !== "unary") {
      streams.set({ method }, 0);
      return {
        begin: () => streams.inc({ method }),
        end(protocol, code) {
          streams.dec({ method });
          count(protocol, code);
        },
      };
    }
    const duration = durations.add({ method });
    return {
      begin: () => inFlight.inc(),
      end(protocol, code, milliseconds) {
        inFlight.dec();
        count(protocol, code);
        duration.observe(milliseconds);
      },
    };
  });
}
