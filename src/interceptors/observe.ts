import { Code, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Call, callKey } from "../caller.js";
import { type Problem, toProblem } from "../errors.js";
import { reasonOf } from "./deadline.js";

/**
 * Writes one line about each call when it ends, and turns whatever was thrown
 * inside into what the caller may see, with the request id on it.
 */
export function createObserveInterceptor(log: Logger): Interceptor {
  return (next) => async (request) => {
    const call = request.contextValues.get(callKey);
    const started = performance.now();
    const method = `${request.service.typeName}/${request.method.name}`;
    call.logged = true;

    const succeed = (code: string) => log.info(describe(call, method, code, started));
    const fail = (reason: unknown): Problem => {
      const problem = toProblem(reason);
      problem.describeFor(call.requestId);
      writeFailure(log, problem, describe(call, method, problem.word, started));
      return problem;
    };

    try {
      const response = await next(request);
      if (response.stream) {
        return {
          ...response,
          message: observeEach(response.message, request.signal, succeed, fail),
        };
      }
      succeed("ok");
      return response;
    } catch (reason) {
      throw fail(reason);
    }
  };
}

/** A caller may leave a stream at any time, which is no failure. */
async function* observeEach<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  succeed: (code: string) => void,
  fail: (reason: unknown) => Problem,
): AsyncGenerator<T> {
  let end: (() => void) | undefined = () => succeed("canceled");
  try {
    yield* messages;
    if (signal.aborted) {
      throw reasonOf(signal);
    }
    end = () => succeed("ok");
  } catch (reason) {
    end = undefined;
    throw fail(reason);
  } finally {
    end?.();
  }
}

function describe({ requestId, caller }: Call, method: string, code: string, started: number) {
  return {
    request_id: requestId,
    method,
    code,
    duration_ms: Math.round((performance.now() - started) * 1000) / 1000,
    application_id: caller?.application.id,
    session_id: caller?.session?.id,
  };
}

function writeFailure(log: Logger, problem: Problem, line: object): void {
  if (problem.code === Code.Internal) {
    log.error({ ...line, err: problem.cause });
  } else if (problem.code === Code.Unavailable) {
    log.warn({ ...line, err: problem.cause });
  } else {
    log.info(line);
  }
}
