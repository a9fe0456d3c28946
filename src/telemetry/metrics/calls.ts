import type { DescMethod } from "@bufbuild/protobuf";
import type { ProtocolName } from "../../auth/caller.js";
import { nameOfMethod } from "../../contract/methods.js";
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

/** Counts the calls of a method. */
export interface MethodCounts {
  /** Called with each call that begins. */
  begin(): void;
  /** Called when it has ended, with `ok` or the word of its problem, after so many milliseconds. */
  end(protocol: ProtocolName, code: string, milliseconds: number): void;
}

export interface CallMetrics {
  of(method: DescMethod): MethodCounts;
  families(): Family[];
}

const protocols: readonly ProtocolName[] = ["rest", "grpc", "grpc-web", "connect"];
const codes = ["ok", ...Object.keys(problemCatalogue)];
const placeOf = new Map(codes.map((code, place) => [code, place]));

/** Shown before they are first seen, so that the first one is seen to be more than none. */
const awaited = new Set(["ok", "internal", "store_unavailable"]);

const requests = "latchkey_requests_total";
const duration = "latchkey_request_duration_seconds";
const streams = "latchkey_streams_open";

/** Counts in numbers that lie ready, so that a call has to make nothing; they get their names when they are asked for. */
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
      const open = unary.reduce((sum, { underWay }) => sum + underWay(), 0);
      return [
        counter(
          requests,
          "Calls that have ended, by method, protocol and code: ok, or the code of the error.",
          all.flatMap((counts) => counts.requests()),
        ),
        histogram(
          duration,
          "How long calls took, by method. Streams, which last as long as their callers like, are left out.",
          unary.flatMap((counts) => counts.durations()),
        ),
        gauge("latchkey_requests_in_flight", "Calls under way, without streams.", singleValue(open)),
        gauge(
          streams,
          "Streams that are open, by method.",
          all
            .filter(({ isStream }) => isStream)
            .map(({ method, underWay }) => ({ labels: { method }, value: underWay() })),
        ),
      ];
    },
  };
}

function createMethodCounts(described: DescMethod) {
  const method = nameOfMethod(described);
  const isStream = described.methodKind !== "unary";
  const took = createHistogram();
  const ended = Object.fromEntries(
    protocols.map((protocol) => [protocol, new Float64Array(codes.length)]),
  ) as Record<ProtocolName, Float64Array>;
  let underWay = 0;

  function requestsOver(protocol: ProtocolName): Value[] {
    const counts = ended[protocol];
    if (counts.every((count) => count === 0)) {
      return [];
    }
    return codes.flatMap((code, place) => {
      const value = counts[place] as number;
      return value > 0 || awaited.has(code) ? [{ labels: { method, protocol, code }, value }] : [];
    });
  }

  return {
    method,
    isStream,
    begin() {
      underWay++;
    },
    end(protocol: ProtocolName, code: string, milliseconds: number) {
      underWay--;
      (ended[protocol][placeOf.get(code) as number] as number)++;
      if (!isStream) {
        took.observe(milliseconds);
      }
    },
    underWay: () => underWay,
    requests: () => protocols.flatMap(requestsOver),
    durations: () => took.values(duration, { method }),
  };
}
