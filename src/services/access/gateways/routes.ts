import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { GatewayRoutesSchema } from "../../../../gen/latchkey/v1/gateway_service_pb.js";
import type { LoadedFile } from "../../../config/parsers.js";
import { ConfigError } from "../../../config/settings.js";
import { type MaybePromise, mapMaybePromise } from "../../../lib/async.js";
import { pollFile } from "../../../lib/polling.js";
import { findFieldViolations } from "../../../validation/violations.js";
import {
  compileRoutes,
  type MatchRoute,
  type Requirement,
  type RoutedRequest,
} from "./route-matcher.js";

/** The routes of `GATEWAY_ROUTES`. */
export interface Routes {
  /** Returns the requirement of a request, or `undefined` if no route matches or there are no routes. */
  match(request: RoutedRequest): MaybePromise<Requirement | undefined>;
  close(): void;
}

/** Reads the routes of a file and reloads them when it changes. A file that is not valid is logged and ignored. */
export function createRoutes(file: LoadedFile | undefined, log: Logger): Routes {
  if (!file) {
    return { match: () => undefined, close() {} };
  }
  // The file was checked before the start. If it cannot be read, every request is denied.
  let matchRoute: MaybePromise<MatchRoute> = parseRoutes(file).catch((error) => {
    log.error(error.message);
    return () => undefined;
  });
  const stop = pollFile(file, {
    async apply(content) {
      matchRoute = await parseRoutes({ path: file.path, content });
      log.info({ path: file.path }, "gateway routes reloaded");
    },
    onProblem: (problem) =>
      log.warn(`gateway routes not reloaded, the current ones stay in use: ${problem}`),
  });
  return {
    match: (request) => mapMaybePromise(matchRoute, (match) => match(request)),
    close: stop,
  };
}

/** Parses and compiles a file of routes. Throws a {@link ConfigError} if it is not valid. */
export async function parseRoutes({ path, content }: LoadedFile): Promise<MatchRoute> {
  const fail = (problem: string): never => {
    throw new ConfigError([`GATEWAY_ROUTES: ${path}: ${problem}`]);
  };
  // Loaded only if it is needed, because it takes a tenth of the time of a start.
  const { parse } = await import("yaml");
  try {
    const message = fromJson(GatewayRoutesSchema, parse(content.toString()) as JsonValue);
    const violations = findFieldViolations(GatewayRoutesSchema, message);
    if (violations.length > 0) {
      throw new Error(violations.map(({ field, message }) => `${field} ${message}`).join("; "));
    }
    return compileRoutes(message.routes);
  } catch (error) {
    return fail((error as Error).message);
  }
}
