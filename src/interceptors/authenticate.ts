import type { Interceptor } from "@connectrpc/connect";
import { type Caller, callKey } from "../caller.js";
import { unauthenticated } from "../errors.js";
import { type Keyring, kindFor, parseKey } from "../keys.js";
import type { Store } from "../store/store.js";

interface AuthenticateOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly keyHeader: string;
}

/** Finds out whose key came with a call, and refuses the call where it is nobody's. */
export function createAuthenticateInterceptor(options: AuthenticateOptions): Interceptor {
  const { store, keyring, keyHeader } = options;

  async function identify(key: string): Promise<Caller | undefined> {
    const parsed = parseKey(key);
    if (parsed?.kind === "ses") {
      const found = await store.sessions.find(parsed.id);
      return found && keyring.matches(key, found.session.keyHash) ? found : undefined;
    }
    if (parsed === undefined || parsed.kind === "non") {
      return undefined;
    }
    const application = await store.applications.find(parsed.id);
    return application &&
      kindFor(application.type) === parsed.kind &&
      keyring.matches(key, application.keyHash)
      ? { application }
      : undefined;
  }

  return (next) => async (request) => {
    const call = request.contextValues.get(callKey);
    call.caller = await identify(request.header.get(keyHeader) ?? "");
    if (!call.caller) {
      throw unauthenticated(keyHeader);
    }
    return next(request);
  };
}
