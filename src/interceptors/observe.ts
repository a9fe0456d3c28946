import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type StreamResponse, type UnaryResponse } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Call, callKey } from "../caller.js";
import { type Problem, toProblem } from "../errors.js";
import type { Denials } from "../events/denials.js";
import { oncePer } from "../once-per.js";
import { withEnd } from "../with-end.js";
import { createCallLine, millisecondsSince } from "./call-line.js";
import { reasonOf } from "./deadline.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./with-message.js";

/**
 * Writes one line about each call when it ends, and turns whatever was thrown
 * inside into what the caller may see, with the request id on it. Callers that
 * are refused are noted.
 */
export function createObserveInterceptor(
  log: Logger,
  denials?: Pick<Denials, "note">,
): Interceptor {
  const writeCallLine = createCallLine(log);
  const nameOf = oncePer(({ parent, name }: DescMethod) => `${parent.typeName}/${name}`);

  return (next) => (request) => {
    const call = request.contextValues.get(callKey);
    const started = performance.now();
    const method = nameOf(request.method);
    call.logged = true;

    const explain = (reason: unknown): Problem => {
      const problem = toProblem(reason);
      problem.describeFor(call.requestId);
      if (isOurs(problem)) {
        writeFailure(log, problem, describe(call, method, started));
      } else {
        writeCallLine(call, method, problem.word, started);
      }
      if (isDenial(problem)) {
        denials?.note(request, problem);
      }
      return problem;
    };

    const fail = (reason: unknown): never => {
      throw explain(reason);
    };
    const succeed = (response: UnaryResponse | StreamResponse) => {
      if (response.stream) {
        const end = (code: string) => writeCallLine(call, method, code, started);
        return withMessage(response, observeEach(response.message, request.signal, end, explain));
      }
      writeCallLine(call, method, "ok", started);
      return response;
    };

    let response: ReturnType<typeof next>;
    try {
      response = next(request);
    } catch (reason) {
      return fail(reason);
    }
    return response instanceof Promise ? response.then(succeed, fail) : succeed(response);
  };
}

/** A caller may leave a stream at any time, which is no failure. */
function observeEach<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  succeed: (code: string) => void,
  fail: (reason: unknown) => Problem,
): AsyncIterable<T> {
  return withEnd(messages, (end) => {
    if (end.how === "failed") {
      throw fail(end.reason);
    }
    if (end.how === "finished" && signal.aborted) {
      throw fail(reasonOf(signal));
    }
    succeed(end.how === "finished" ? "ok" : "canceled");
  });
}

/** Whether a problem is that the caller may not, or is not known. */
function isDenial({ code }: Problem): boolean {
  return code === Code.PermissionDenied || code === Code.Unauthenticated;
}

/** Whether a problem is none of the caller's doing. */
function isOurs({ code }: Problem): boolean {
  return code === Code.Internal || code === Code.Unavailable;
}

function describe({ requestId, caller }: Call, method: string, started: number) {
  return {
    request_id: requestId,
    method,
    duration_ms: millisecondsSince(started),
    application_id: caller?.application.id,
    session_id: caller?.session?.id,
  };
}

function writeFailure(log: Logger, { code, word, cause }: Problem, line: object): void {
  if (code === Code.Internal) {
    log.error({ ...line, code: word, err: cause });
  } else {
    log.warn({ ...line, code: word, err: cause });
  }
}
