/** What becomes of the requests of a soak. */
export interface Record {
  /** Makes a request, and notes how long it took, or that it went wrong. */
  time<T>(kind: string, request: () => Promise<T>): Promise<T>;
  /** The latencies by kind of request, in milliseconds, and how to begin anew. */
  readonly latencies: Map<string, number[]>;
  readonly errors: Errors;
  clear(): void;
}

interface Errors {
  count: number;
  /** The first of each kind. */
  readonly examples: Map<string, string>;
}

export function createRecord(): Record {
  const latencies = new Map<string, number[]>();
  const errors: Errors = { count: 0, examples: new Map() };
  return {
    latencies,
    errors,

    async time(kind, request) {
      const begun = performance.now();
      try {
        const answer = await request();
        const known = latencies.get(kind) ?? [];
        known.push(performance.now() - begun);
        latencies.set(kind, known);
        return answer;
      } catch (error) {
        errors.count++;
        if (!errors.examples.has(kind)) {
          errors.examples.set(kind, String(error));
        }
        throw error;
      }
    },

    clear() {
      latencies.clear();
      errors.count = 0;
      errors.examples.clear();
    },
  };
}
