import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "../../middleware/interceptor.js";
import { type Codecs, createCodecs } from "../codec/codecs.js";
import type { JsonOptions } from "../codec/connect-json.js";
import { type Implementation, openBodyLimit, type RpcOptions } from "./implementation.js";

/** A method at the path that gRPC, gRPC-Web and Connect know it by. */
export interface MountedMethod {
  readonly path: string;
  readonly method: DescMethod;
  readonly implementation: Implementation;
  readonly codecs: Codecs;
  /** Those that tell by the headers alone whether a call may be made. */
  readonly admission: readonly Interceptor[];
  /** Those of them that tell whether it still may. */
  readonly readmission: readonly Interceptor[];
  /** Those that need the message. */
  readonly inspection: readonly Interceptor[];
  /** How many bytes a message may have. */
  readonly bodyLimit: number;
}

export function mountMethods(options: RpcOptions, jsonOptions: JsonOptions): MountedMethod[] {
  const { implementations, openImplementations, bodyLimit } = options;
  const { admission, readmission, inspection } = options.interceptors;
  const codecsOf = createCodecs(jsonOptions);

  function mount(
    implementation: Implementation,
    rest: Pick<MountedMethod, "admission" | "readmission" | "inspection" | "bodyLimit">,
  ): MountedMethod[] {
    const { service } = implementation;
    return service.methods.map((method) => ({
      path: `/${service.typeName}/${method.name}`,
      method,
      implementation,
      codecs: codecsOf(method),
      ...rest,
    }));
  }

  return [
    ...implementations.flatMap((it) =>
      mount(it, { admission, readmission, inspection, bodyLimit }),
    ),
    ...openImplementations.flatMap((it) =>
      mount(it, { admission: [], readmission: [], inspection: [], bodyLimit: openBodyLimit }),
    ),
  ];
}
