import { createRegistry } from "@bufbuild/protobuf";
import type { RpcOptions } from "./rpc-doors.js";

/** How the JSON of Connect is read and written. */
export type JsonOptions = ReturnType<typeof jsonOptionsFor>;

export function jsonOptionsFor({
  implementations,
  openImplementations,
}: Pick<RpcOptions, "implementations" | "openImplementations">) {
  const services = [...implementations, ...openImplementations].map(({ service }) => service);
  return {
    // A mistyped name must not be taken for a field that was left out.
    ignoreUnknownFields: false,
    // Without this bytes that are not UTF-8 would be replaced.
    textDecoder: new TextDecoder("utf-8", { fatal: true }),
    // As over REST: that something is not allowed is said, and not left out.
    alwaysEmitImplicit: true,
    // The types that a message may hold in an Any, which JSON cannot be made of without them.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}
