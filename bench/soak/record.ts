import { withTimeout } from "../../src/lib/timeout.js";

/** What becomes of the requests of a soak. */
export interface Record {
  /** Takes a journey. Whatever goes wrong on it, in a request or between two, is counted, and answered as false. */
  attempt(journey: () => Promise<unknown>): Promise<boolean>;
  /** Makes a request of a journey, and notes how long it took. One without an answer fails as well. */
  time<T>(kind: string, request: () => Promise<T>): Promise<T>;
  /** The latencies by kind of request, in milliseconds. */
  readonly latencies: Map<string, number[]>;
  readonly errors: Errors;
}

interface Errors {
  count: number;
  /** The first few. */
  readonly examples: string[];
}

/** How long an answer may take before it counts as missing. */
const patience = 15_000;
const mostExamples = 10;

export function createRecord(): Record {
  const latencies = new Map<string, number[]>();
  const errors: Errors = { count: 0, examples: [] };
  return {
    latencies,
    errors,

    async attempt(journey) {
      try {
        await journey();
        return true;
      } catch (error) {
        errors.count++;
        if (errors.examples.length < mostExamples) {
          errors.examples.push(String(error instanceof Error ? error.message : error));
        }
        return false;
      }
    },

    async time(kind, request) {
      const begun = performance.now();
      try {
        const answer = await withTimeout(request(), patience, noAnswer, { keepsRunning: true });
        const known = latencies.get(kind) ?? [];
        known.push(performance.now() - begun);
        latencies.set(kind, known);
        return answer;
      } catch (error) {
        throw new Error(`${kind}: ${error}`, { cause: error });
      }
    },
  };
}

function noAnswer(): never {
  throw new Error(`no answer for ${patience / 1000} seconds`);
}
