import type { DescMethod } from "@bufbuild/protobuf";
import type { ProtocolName } from "../../auth/caller.js";
import { methodName } from "../../contract/methods.js";
import { problemCatalogue } from "../../contract/problems.js";
import { memoize } from "../../lib/cache.js";
import {
  counter,
  createHistogram,
  type Family,
  gauge,
  histogram,
  singleValue,
  type Value,
} from "./families.js";

/** The metrics of one method. */
export interface MethodCounts {
  begin(): void;
  /** Records the end of a call with `ok` or the code of its problem. */
  end(protocol: ProtocolName, code: string, milliseconds: number): void;
}

export interface CallMetrics {
  of(method: DescMethod): MethodCounts;
  families(): Family[];
}

const protocols: readonly ProtocolName[] = ["rest", "grpc", "grpc-web", "connect"];
const codes = ["ok", ...Object.keys(problemCatalogue)];
const indexOfCode = new Map(codes.map((code, index) => [code, index]));

/** Exported with 0 before they first occur, so that `rate()` sees the first increase. */
const alwaysExported = new Set(["ok", "internal", "store_unavailable"]);

const requests = "latchkey_requests_total";
const duration = "latchkey_request_duration_seconds";
const streams = "latchkey_streams_open";

/** Counts in preallocated arrays, so that a call allocates nothing. Labels are added on a scrape. */
export function createCallMetrics(): CallMetrics {
  const all: ReturnType<typeof createMethodCounts>[] = [];
  const of = memoize((method: DescMethod) => {
    const counts = createMethodCounts(method);
    all.push(counts);
    return counts;
  });

  return {
    of,
    families: () => {
      const unary = all.filter(({ isStream }) => !isStream);
      const inFlight = unary.reduce((sum, counts) => sum + counts.inFlight(), 0);
      return [
        counter(
          requests,
          "Completed calls by method, protocol and code (ok, or the code of the error).",
          all.flatMap((counts) => counts.requests()),
        ),
        histogram(
          duration,
          "Duration of unary calls by method.",
          unary.flatMap((counts) => counts.durations()),
        ),
        gauge("latchkey_requests_in_flight", "Unary calls in progress.", singleValue(inFlight)),
        gauge(
          streams,
          "Open streams by method.",
          all
            .filter(({ isStream }) => isStream)
            .map(({ method, inFlight }) => ({ labels: { method }, value: inFlight() })),
        ),
      ];
    },
  };
}

function createMethodCounts(described: DescMethod) {
  const method = methodName(described);
  const isStream = described.methodKind !== "unary";
  const durations = createHistogram();
  const completed = Object.fromEntries(
    protocols.map((protocol) => [protocol, new Float64Array(codes.length)]),
  ) as Record<ProtocolName, Float64Array>;
  let inFlight = 0;

  function requestsOver(protocol: ProtocolName): Value[] {
    const counts = completed[protocol];
    if (counts.every((count) => count === 0)) {
      return [];
    }
    return codes.flatMap((code, index) => {
      const value = counts[index] as number;
      const isExported = value > 0 || alwaysExported.has(code);
      return isExported ? [{ labels: { method, protocol, code }, value }] : [];
    });
  }

  return {
    method,
    isStream,
    begin() {
      inFlight++;
    },
    end(protocol: ProtocolName, code: string, milliseconds: number) {
      inFlight--;
      (completed[protocol][indexOfCode.get(code) as number] as number)++;
      if (!isStream) {
        durations.observe(milliseconds);
      }
    },
    inFlight: () => inFlight,
    requests: () => protocols.flatMap(requestsOver),
    durations: () => durations.values(duration, { method }),
  };
}
