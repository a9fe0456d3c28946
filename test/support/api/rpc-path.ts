import type { DescMethod } from "@bufbuild/protobuf";

/** The path of a method over gRPC, gRPC-Web and Connect. */
export function rpcPath(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}
