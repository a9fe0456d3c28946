import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "../../middleware/interceptor.js";
import type { JsonOptions } from "../codec/connect-json.js";
import { type Codecs, createCodecs } from "./codecs.js";
import { type Implementation, openBodyLimit, type RpcOptions } from "./implementation.js";

/** A method at its RPC path. */
export interface MountedMethod {
  readonly path: string;
  readonly method: DescMethod;
  readonly implementation: Implementation;
  readonly codecs: Codecs;
  /** Interceptors that need only the headers. */
  readonly admission: readonly Interceptor[];
  /** Those of them that run again while a stream is open. */
  readonly readmission: readonly Interceptor[];
  /** Interceptors that need the message. */
  readonly inspection: readonly Interceptor[];
  /** The message limit in bytes. */
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
