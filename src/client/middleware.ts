import { defaultKeyHeader } from "../key-header.js";
import type { Guard, GuardAnswer, Token } from "./guard.js";
import { type Refusal, toRefusal, unknownKey } from "./refusal.js";

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
export type Admission =
  | { readonly answer: GuardAnswer; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: Refusal };

/** Where requests come in. */
export interface Gate<Request> {
  /** The name of the header that carries the key, in lower case. */
  readonly keyHeader: string;

  /**
   * Decides about a request by what came with it. Throws what the functions in
   * the options throw: then too nothing is let in.
   */
  admit(request: Request, sent: Sent): Promise<Admission>;
}

/** What a framework tells of a request. */
export interface Sent {
  /** All that came in the header of the key. */
  readonly key: SentHeader;
  /** All that came in the header `Origin`. */
  readonly origin: SentHeader;
  /** Where it came from. */
  readonly address?: string | undefined;
}

/** The values of a header, in the various forms in which frameworks have them. */
export type SentHeader = string | readonly unknown[] | null | undefined;

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
