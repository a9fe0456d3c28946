import { Code } from "@connectrpc/connect";
import {
  askForKey,
  type ProblemCode,
  problemCatalogue,
  problemMediaType,
  problemUri,
} from "../problem-catalogue.js";
import type { GuardAnswer } from "./guard.js";

/** Why a request is not let in, in the words of HTTP and of gRPC. */
export interface Refusal {
  readonly word: string;
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
  readonly detail: string;
  /** Headers that belong to the answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What a caller is told where the guard does not allow it. */
export function toRefusal({ reason, detail }: GuardAnswer, keyHeader: string): Refusal {
  switch (reason) {
    case "unknown_key":
    case "expired":
      return unknownKey(keyHeader);
    case "unavailable":
      return unavailable;
    case "invalid_request":
    case "origin_not_allowed":
    case "address_not_allowed":
      return refusal(reason, detail);
    default:
      return refusal("permission_denied", detail);
  }
}

function refusal(
  word: ProblemCode,
  detail: string | undefined,
  headers: Refusal["headers"] = {},
): Refusal {
  const type = problemCatalogue[word];
  return { ...type, word, detail: detail ?? `${type.title}.`, headers };
}

/** One answer for every key that is not good, and the same that the service itself gives. */
export function unknownKey(keyHeader: string): Refusal {
  const { detail, headers } = askForKey(keyHeader);
  return refusal("unauthenticated", detail, headers);
}

/** What the guard knows about it is for the log of the service, not for its callers. */
const unavailable: Refusal = {
  word: "unavailable",
  status: 503,
  grpc: Code.Unavailable,
  title: "Keys cannot be checked now",
  detail: "The key cannot be checked now. Try again soon.",
  headers: { "retry-after": "1" },
};

/** The headers of a refusal over HTTP. */
export function problemHeaders({ headers }: Refusal): Record<string, string> {
  return { ...headers, "content-type": problemMediaType };
}

/** The body of a refusal over HTTP, after RFC 9457. */
export function problemBody({ word, title, status, detail }: Refusal): string {
  return JSON.stringify({ type: problemUri(word), title, status, detail, code: word });
}
