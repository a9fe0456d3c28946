import { Code, ConnectError } from "@connectrpc/connect";
import {
  readAllBytes,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import type { Problem } from "../errors.js";
import { envelopeSize } from "./protocols/envelope.js";

/** The status of the library's answer to a content type that is of no protocol. */
export const unsupportedMediaType = 415;

/** Refuses a call in its own protocol: the library tells what goes wrong while it reads a body. */
export function refuse(
  handler: UniversalHandler,
  { method, header, ...request }: UniversalServerRequest,
  problem: Problem,
): Promise<UniversalServerResponse> {
  const type = (method === "POST" && header.get("content-type")) || "application/json";
  return handler({
    ...request,
    method: "POST",
    header: new Headers({ "content-type": type }),
    body: { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(problem) }) },
  });
}

/** The error that the library gave as an answer, in whichever protocol. */
export async function readError({
  header,
  body,
  trailer,
}: UniversalServerResponse): Promise<ConnectError> {
  const unknown = new ConnectError("", Code.InvalidArgument);
  if (trailer || !body) {
    return (trailer && findTrailerError(trailer)) ?? unknown;
  }
  try {
    const bytes = await readAllBytes(body, Number.MAX_SAFE_INTEGER);
    return header?.get("content-type")?.startsWith("application/grpc-web")
      ? (findTrailerError(trailerParse(bytes.subarray(envelopeSize))) ?? unknown)
      : errorFromJsonBytes(bytes, undefined, unknown);
  } catch {
    return unknown;
  }
}
