import { type ProblemCode, problemCatalogue } from "../../src/problem-catalogue.js";

/** One way to fail, as the document tells it. */
export interface ProblemType {
  readonly status: number;
  readonly title: string;
  /** When it happens. */
  readonly when: string;
  /** What the caller is told, for example. */
  readonly detail: string;
  /** The headers that come with it, besides those of every answer. */
  readonly headers?: readonly string[];
}

type Story = Omit<ProblemType, "status" | "title">;

/** What there is to tell of the errors that REST callers meet, besides what the service knows of them. */
const stories: Partial<Record<ProblemCode, Story>> = {
  invalid_request: {
    when: "The request cannot be read, or breaks a rule: `errors` says which, by field.",
    detail: "The request cannot be read.",
  },
  unauthenticated: {
    when: "The key is missing, or it is not one that works. The answer is the same for all of them.",
    detail:
      "Send the key of an application or session. " +
      "The key is missing, or it is not one that works: mistyped, replaced, expired or deleted.",
    headers: ["WWW-Authenticate"],
  },
  permission_denied: {
    when: "The key works, but does not allow this.",
    detail: "The key does not allow this.",
  },
  application_not_found: {
    when: "There is no such application in the tenant of the key.",
    detail:
      "There is no application 0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a in the tenant of your key. " +
      "It may have expired or been deleted.",
  },
  nonce_not_found: {
    when: "The nonce is unknown, or its session has expired.",
    detail:
      "The nonce belongs to no session that is open in the tenant of your key. " +
      "The session may have expired: open a new one.",
  },
  nonce_used: {
    when: "The nonce has been used.",
    detail:
      "The session of this nonce is already authorized. A nonce works once: open a new session.",
  },
  body_too_large: {
    when: "The body is larger than the service takes.",
    detail: "The body may have at most 1048576 bytes. Send less.",
  },
  unsupported_media_type: {
    when: "The body is not said to be JSON.",
    detail: "Send the body as application/json.",
  },
  internal: {
    when: "Something went wrong that is not the caller's fault.",
    detail:
      "The request failed and nothing is known to be wrong with it. " +
      "Tell the operator its request id.",
  },
  store_unavailable: {
    when: "The store cannot be reached now. Try again after the time given.",
    detail: "The store cannot be reached now. Try again soon.",
    headers: ["Retry-After"],
  },
  deadline_exceeded: {
    when: "The request took longer than the service allows.",
    detail: "The request took too long. Try again.",
  },
};

/** An error by its stable word. */
export function problemType(code: string): ProblemType {
  const story = stories[code as ProblemCode];
  if (!story) {
    throw new Error(`there is no error ${code} in the catalogue`);
  }
  return { ...problemCatalogue[code as ProblemCode], ...story };
}
