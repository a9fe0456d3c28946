import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Settings } from "../config.js";
import { createIdentify } from "../identify.js";
import type { Keyring } from "../keys.js";
import type { Store } from "../store/store.js";
import { createAuthenticateInterceptor } from "./authenticate.js";
import { createAuthorizeInterceptor } from "./authorize.js";
import { createDeadlineInterceptor } from "./deadline.js";
import type { Interceptor } from "./interceptor.js";
import { createObserveInterceptor } from "./observe.js";
import { createReadStreamInterceptor } from "./read-stream.js";
import { createValidateInterceptor } from "./validate.js";

interface InterceptorOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly settings: Settings;
  readonly log: Logger;
  readonly methods: readonly DescMethod[];
}

/** The interceptors of every call, in order, the outermost first. */
export interface Interceptors {
  readonly observe: Interceptor;
  readonly deadline: Interceptor;
  /** Those that tell by the headers alone whether a call may be made. */
  readonly admission: readonly Interceptor[];
  /** Those that need the message. */
  readonly inspection: readonly Interceptor[];
  /** Tells what is wrong with messages of a stream that the protocol library reads. */
  readonly readStream: Interceptor;
}

export function createInterceptors(options: InterceptorOptions): Interceptors {
  const { store, keyring, settings, log, methods } = options;
  const { keyHeader, requestTimeout, bodyLimit } = settings;
  return {
    observe: createObserveInterceptor(log),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [
      createAuthenticateInterceptor(createIdentify(store, keyring), keyHeader),
      createAuthorizeInterceptor(methods),
    ],
    inspection: [createValidateInterceptor()],
    readStream: createReadStreamInterceptor(bodyLimit),
  };
}
