import type { ApiFailure, StreamedCheck, StreamingApi } from "../../support/api/api.js";
import { createRequestStream } from "../../support/api/streams.js";

/** An access check stream that stays open between requests. */
interface AskedStream {
  /** The responses for keys, or the error that ended the stream. */
  ask(keys: readonly string[], permission: string): Promise<readonly (boolean | string)[]>;
  close(): void;
}

export function openCheckStream(api: StreamingApi, key: string): AskedStream {
  const leaving = new AbortController();
  const requests = createRequestStream<StreamedCheck>();
  const answers = api.streamCheckAccess(key, requests, leaving.signal)[Symbol.asyncIterator]();

  async function next(): Promise<boolean | string> {
    try {
      const { done, value } = await answers.next();
      return done ? "ended without a reason" : (value.result?.allowed ?? "nothing");
    } catch (failure) {
      return (failure as ApiFailure).reason;
    }
  }

  return {
    async ask(keys, permission) {
      requests.send(...keys.map((subject) => ({ check: { key: subject, permission } })));
      const heard: (boolean | string)[] = [];
      while (heard.length < keys.length && typeof (heard.at(-1) ?? true) === "boolean") {
        heard.push(await next());
      }
      return heard;
    },

    close: () => leaving.abort(),
  };
}
