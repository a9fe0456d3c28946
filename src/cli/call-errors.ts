import { Code, ConnectError } from "@connectrpc/connect";
import { problemOf } from "../contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../contract/problems.js";
import type { ExitName } from "./errors.js";
import { CommandFailure } from "./errors.js";

const exitOfStatus: Readonly<Record<number, ExitName>> = {
  400: "usage",
  401: "refused",
  403: "refused",
  404: "notFound",
  408: "unreachable",
  409: "conflict",
  412: "conflict",
  422: "usage",
  429: "unreachable",
  503: "unreachable",
  504: "unreachable",
};

const hints: Readonly<Record<string, string>> = {
  unauthenticated:
    "Give a key that works: by --key-file FILE, LATCHKEY_KEY, or latchkey profile add NAME.",
  version_mismatch: "Look at it again, and say the same again where it still holds.",
};

/** What to tell of a call that was refused or got lost. What is no such thing stays as it is. */
export function explainCall(thrown: unknown, url: string): unknown {
  if (!(thrown instanceof ConnectError)) {
    return thrown;
  }
  const { code, detail, errors, requestId } = problemOf(thrown);
  if (code === undefined) {
    return explainLost(thrown, url);
  }
  const fields = Object.entries(errors).flatMap(([field, messages]) =>
    messages.map((message) => (field ? `${field}: ${message}` : message)),
  );
  const request = requestId ? ` (request ${requestId})` : "";
  const lines = fields.length > 0 ? fields : [detail];
  const { status = 500 } = problemCatalogue[code as ProblemCode] ?? {};
  return new CommandFailure(
    `${lines.join("\n")}${request}`,
    exitOfStatus[status] ?? "failed",
    hints[code],
  );
}

/** Calls that no service of ours has answered. */
function explainLost(error: ConnectError, url: string): CommandFailure {
  switch (error.code) {
    case Code.DeadlineExceeded:
      return new CommandFailure(
        `${url} has not answered in time.`,
        "unreachable",
        "Give it longer by --timeout, or look at its log.",
      );
    case Code.Unauthenticated:
      return new CommandFailure(error.rawMessage, "refused");
    default:
      return new CommandFailure(
        `${url} cannot be reached, or is no Latchkey: ${error.rawMessage}`,
        "unreachable",
        "Start it, or name another by --url, LATCHKEY_URL or a profile.",
      );
  }
}
