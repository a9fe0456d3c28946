import { Code } from "@connectrpc/connect";
import { defaultKeyHeader } from "../contract/headers.js";
import {
  askForKey,
  type ProblemCode,
  problemCatalogue,
  problemMediaType,
  problemUri,
} from "../contract/problems.js";
import type { GuardAnswer, Token } from "./check-request.js";
import type { Guard } from "./guard.js";

/** How a request is checked, whichever framework it comes through. */
export interface MiddlewareOptions<Request> {
  /** What a caller needs, or what answers it for a request. */
  readonly permission: string | ((request: Request) => string);
  /** The token that a request is about. Absent where it is about none. */
  readonly token?: ((request: Request) => Token | undefined) | undefined;
  /** The header that carries the caller's key; `SVC-API-KEY` by default. */
  readonly keyHeader?: string | undefined;
  /**
   * The address that a request came from, for keys that may be used from some
   * networks only. By default it is the one that the framework tells.
   */
  readonly address?: ((request: Request) => string | undefined) | undefined;
}

/** What the guard said of a request that is let in, or why it is not. */
type Admission =
  | { readonly answer: GuardAnswer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: Refusal };

/** Where requests come in. */
interface Gate<Request> {
  /** The name of the header that carries the key, in lower case. */
  readonly keyHeader: string;

  /**
   * Decides about a request by what came with it. Throws what the functions in
   * the options throw: then too nothing is let in.
   */
  admit(request: Request, sent: Sent): Promise<Admission>;
}

/** What a framework tells of a request. */
interface Sent {
  /** All that came in the header of the key. */
  readonly key: SentHeader;
  /** All that came in the header `Origin`. */
  readonly origin: SentHeader;
  /** Where it came from. */
  readonly address?: string | undefined;
}

/** The values of a header, in the various forms in which frameworks have them. */
type SentHeader = string | readonly unknown[] | null | undefined;

export function createGate<Request>(
  guard: Guard,
  { permission, token, address, keyHeader = defaultKeyHeader }: MiddlewareOptions<Request>,
): Gate<Request> {
  return {
    keyHeader: keyHeader.toLowerCase(),

    async admit(request, sent) {
      const key = soleKeyIn(sent.key);
      if (key === undefined) {
        return { refusal: unknownKey(keyHeader) };
      }
      const wanted = typeof permission === "string" ? permission : permission(request);
      const place = {
        origin: soleTextIn(sent.origin),
        address: address ? address(request) : sent.address,
      };
      const answer = await guard.check(key, wanted, token?.(request), place);
      return answer.allowed ? { answer } : { refusal: toRefusal(answer, keyHeader) };
    },
  };
}

/** The one key that was sent. Where there are several, nobody can say which of them is meant. */
function soleKeyIn(sent: SentHeader): string | undefined {
  const key = soleTextIn(sent);
  // A header that is sent twice arrives as a list: neither Node nor Headers keep the two apart.
  return key === "" || key?.includes(",") ? undefined : key;
}

function soleTextIn(sent: SentHeader): string | undefined {
  const [text, ...others] = [sent ?? []].flat();
  return typeof text === "string" && others.length === 0 ? text : undefined;
}

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
function toRefusal({ reason, detail }: GuardAnswer, keyHeader: string): Refusal {
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
function unknownKey(keyHeader: string): Refusal {
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

const answers = new WeakMap<object, GuardAnswer>();

/** Keeps what the guard said of a request for as long as the request is there. */
export function keepAnswer(request: object, answer: GuardAnswer): void {
  answers.set(request, answer);
}

/** What the guard said of a request, or an error where it was not asked. */
export function keptAnswer(request: object): GuardAnswer {
  return expectAnswer(answers.get(request));
}

export function expectAnswer(answer: GuardAnswer | undefined): GuardAnswer {
  if (!answer) {
    throw new Error("The guard was not asked about this request: put its middleware before this.");
  }
  return answer;
}
