import { createRegistry } from "@bufbuild/protobuf";
import { excessIn } from "../json/json-text.js";
import type { RpcOptions } from "./rpc-doors.js";

/** How the JSON of Connect is read and written. */
export type JsonOptions = ReturnType<typeof jsonOptionsFor>;

export function jsonOptionsFor({
  implementations,
  openImplementations,
  jsonDepth,
}: Pick<RpcOptions, "implementations" | "openImplementations" | "jsonDepth">) {
  const services = [...implementations, ...openImplementations].map(({ service }) => service);
  return {
    jsonDepth,
    // A mistyped name must not be taken for a field that was left out.
    ignoreUnknownFields: false,
    textDecoder: createTextDecoder(jsonDepth),
    // As over REST: that something is not allowed is said, and not left out.
    alwaysEmitImplicit: true,
    // The types that a message may hold in an Any, which JSON cannot be made of without them.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}

/** Creates what makes a text of bytes before anybody parses it. */
function createTextDecoder(jsonDepth: number) {
  // Bytes that are not UTF-8 would be replaced otherwise.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  return {
    decode(bytes: Uint8Array): string {
      const excess = excessIn(bytes, jsonDepth);
      if (excess !== undefined) {
        throw new Error(`it ${excess}`);
      }
      return utf8.decode(bytes);
    },
  };
}
