import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { AddressOf } from "../caller-address.js";
import type { Settings } from "../config.js";
import type { Denials } from "../events/denials.js";
import { createIdentify } from "../identify.js";
import type { Keyring } from "../keys.js";
import type { Store } from "../store/store.js";
import type { Uses } from "../uses.js";
import { createAuthenticateInterceptor } from "./authenticate.js";
import { createAuthorizeInterceptor } from "./authorize.js";
import { createCheckPlaceInterceptor } from "./check-place.js";
import { createDeadlineInterceptor } from "./deadline.js";
import type { Interceptor } from "./interceptor.js";
import { createNoteUseInterceptor } from "./note-use.js";
import { createObserveInterceptor } from "./observe.js";
import { createReadStreamInterceptor } from "./read-stream.js";
import { createValidateInterceptor } from "./validate.js";

interface InterceptorOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly settings: Settings;
  readonly uses: Uses;
  readonly denials: Denials;
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
  const { store, keyring, addressOf, settings, uses, denials, log, methods } = options;
  const { keyHeader, requestTimeout, bodyLimit } = settings;
  return {
    observe: createObserveInterceptor(log, denials),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [
      createAuthenticateInterceptor(createIdentify(store, keyring), keyHeader),
      createCheckPlaceInterceptor(addressOf),
      createNoteUseInterceptor(uses),
      createAuthorizeInterceptor(methods),
    ],
    inspection: [createValidateInterceptor()],
    readStream: createReadStreamInterceptor(bodyLimit),
  };
}
