import type { Api, StreamingApi } from "../../support/api/api.js";
import type { SecretFinder } from "./secret-finder.js";

/** Outputs of the service, each with its source. */
export type Outputs = [source: string, content: string | Buffer][];

/** A running service, and everything that it has output. */
export interface Recording {
  readonly url: string;
  readonly port: number;
  readonly root: string;
  readonly finder: SecretFinder;
  readonly outputs: Outputs;
}

/** JSON that also supports bigint. */
export function stringify(value: unknown): string {
  return JSON.stringify(value, (_name, item) => (typeof item === "bigint" ? String(item) : item));
}

/** Wraps an API. Records all responses and errors, except for the secrets that a response must contain. */
export function recordApi<A extends Api>(name: string, api: A, { finder, outputs }: Recording): A {
  const secretFields = ["key", "sessionKey", "nonce"];
  const record = (method: string, response: unknown) => {
    const { ...rest } = (response ?? {}) as Record<string, unknown>;
    for (const field of secretFields) {
      if (typeof rest[field] === "string") {
        finder.add(rest[field]);
        delete rest[field];
      }
    }
    outputs.push([`${method} over ${name}`, stringify(rest)]);
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
          outputs.push([`headers of ${method} over ${name}`, stringify([...headers])]);
        try {
          const response = await call(key && { ...key, onHeaders }, request);
          record(method, response);
          return response;
        } catch (failure) {
          outputs.push([`an error of ${method} over ${name}`, stringify(failure) + failure]);
          throw failure;
        }
      };
    },
  });
}

/** Watches events and credentials over several protocols during `work`. */
export async function withWatchers(
  apis: readonly [name: string, api: StreamingApi][],
  recording: Recording,
  work: () => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  const streams = apis.flatMap(([name, api]) => [
    recordMessages(name, api.watchEvents(recording.root, {}, controller.signal), recording),
    recordMessages(name, api.watchCredentials(recording.root, {}, controller.signal), recording),
  ]);
  await work();
  controller.abort();
  await Promise.all(streams);
}

/** Records the messages and the error of a stream. */
export async function recordMessages(
  name: string,
  messages: AsyncIterable<unknown>,
  { outputs }: Recording,
): Promise<void> {
  try {
    for await (const message of messages) {
      outputs.push([`a stream over ${name}`, stringify(message)]);
    }
  } catch (failure) {
    outputs.push([`the end of a stream over ${name}`, stringify(failure) + failure]);
  }
}

/** Appends the percent-decoded text, so that both forms are searched. */
export function appendDecoded(text: string): string {
  return (
    text +
    text.replaceAll(/%([0-9a-f]{2})/gi, (_all, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  );
}
