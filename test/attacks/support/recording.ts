import type { Api, StreamingApi } from "../../support/api/api.js";
import type { SecretFinder } from "./secret-finder.js";

/** What was written, and where. */
export type Written = [where: string, what: string | Buffer][];

/** A service in a process of its own, and what is known of it. */
export interface Run {
  readonly url: string;
  readonly port: number;
  readonly root: string;
  readonly finder: SecretFinder;
  readonly written: Written;
}

/** Everything of an answer; numbers of 64 bits have no JSON. */
export function textOf(answer: unknown): string {
  return JSON.stringify(answer, (_name, value) =>
    typeof value === "bigint" ? String(value) : value,
  );
}

/** An API of which all answers and refusals are kept, but for the secrets that an answer is there to tell. */
export function recorded<A extends Api>(name: string, api: A, { finder, written }: Run): A {
  const handedOut = ["key", "sessionKey", "nonce"];
  const keep = (method: string, answer: unknown) => {
    const { ...rest } = (answer ?? {}) as Record<string, unknown>;
    for (const field of handedOut) {
      if (typeof rest[field] === "string") {
        finder.add(rest[field]);
        delete rest[field];
      }
    }
    written.push([`${method} over ${name}`, textOf(rest)]);
  };
  return new Proxy(api, {
    get(target, method: keyof A & string) {
      const call = target[method] as (...args: unknown[]) => unknown;
      if (method === "close" || method.startsWith("watch") || method.startsWith("stream")) {
        return call;
      }
      return async (given: unknown, request: unknown) => {
        const key = typeof given === "string" ? { key: given, headers: {} } : given;
        const onHeaders = (headers: Headers) =>
          written.push([`headers of ${method} over ${name}`, textOf([...headers])]);
        try {
          const answer = await call(key && { ...key, onHeaders }, request);
          keep(method, answer);
          return answer;
        } catch (failure) {
          written.push([`a refusal of ${method} over ${name}`, textOf(failure) + failure]);
          throw failure;
        }
      };
    },
  });
}

/** Follows what happens over several protocols while something does. */
export async function withWatchers(
  apis: readonly [name: string, api: StreamingApi][],
  run: Run,
  work: () => Promise<void>,
): Promise<void> {
  const end = new AbortController();
  const streams = apis.flatMap(([name, api]) => [
    recordMessages(name, api.watchEvents(run.root, {}, end.signal), run),
    recordMessages(name, api.watchCredentials(run.root, {}, end.signal), run),
  ]);
  await work();
  end.abort();
  await Promise.all(streams);
}

/** Keeps all that a stream tells, and how it ends. */
export async function recordMessages(
  name: string,
  messages: AsyncIterable<unknown>,
  { written }: Run,
): Promise<void> {
  try {
    for await (const message of messages) {
      written.push([`a stream over ${name}`, textOf(message)]);
    }
  } catch (failure) {
    written.push([`the end of a stream over ${name}`, textOf(failure) + failure]);
  }
}

/** What is percent-encoded is looked at as it is and decoded. */
export function decoded(text: string): string {
  return (
    text +
    text.replaceAll(/%([0-9a-f]{2})/gi, (_all, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  );
}
