/** Guard interceptor for @grpc/grpc-js: `latchkey/client/grpc`. */
import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerListener,
  status,
} from "@grpc/grpc-js";
import type { Decision } from "./decision.js";
import type { Guard } from "./guard.js";
import {
  createAuthorizer,
  type MiddlewareOptions,
  type Refusal,
  saveDecision,
  savedDecision,
} from "./middleware.js";

/** A call to check. */
export interface GuardedCall {
  /** The method, for example `/shop.v1.Tokens/GetToken`. */
  readonly path: string;
  readonly metadata: Metadata;
  /**
   * The message of a unary request. `undefined` for a stream of messages, which
   * is checked once, before the first one.
   */
  readonly message: unknown;
}

export interface GuardInterceptorOptions extends MiddlewareOptions<GuardedCall> {
  /** Called with errors of functions in the options: grpc-js has no error handler. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Creates a server interceptor that forwards allowed calls only.
 *
 *     const permission = ({ path }: GuardedCall) => permissions[path] ?? "nobody:holds";
 *     new Server({ interceptors: [createGuardInterceptor(guard, { permission })] });
 *
 * Other calls fail with UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT or
 * UNAVAILABLE, and no handler runs. If a function in the options throws, the
 * call fails with INTERNAL.
 *
 * Interceptors of a server apply to all its methods. To leave some open, for
 * example a health service, wrap this one:
 *
 *     (method, call) =>
 *       isOpen(method.path) ? new ServerInterceptingCall(call) : guarded(method, call)
 */
export function createGuardInterceptor(
  guard: Guard,
  { onError, ...options }: GuardInterceptorOptions,
): ServerInterceptor {
  const authorizer = createAuthorizer(guard, options);

  function report(error: unknown): void {
    try {
      onError?.(error);
    } catch {
      // A listener must not end the process.
    }
  }

  return ({ path, requestStream }, call) => {
    async function isAllowed(metadata: Metadata, message: unknown): Promise<boolean> {
      try {
        const received = {
          key: metadata.get(authorizer.keyHeader),
          authorization: metadata.get("authorization"),
          origin: metadata.get("origin"),
          address: addressIn(call.getPeer()),
        };
        const { decision, refusal } = await authorizer.authorize(
          { path, metadata, message },
          received,
        );
        if (refusal) {
          call.sendStatus(toStatus(refusal));
          return false;
        }
        saveDecision(metadata, decision);
        return true;
      } catch (error) {
        call.sendStatus({ code: status.INTERNAL, details: "The key could not be checked." });
        report(error);
        return false;
      }
    }

    const listener = requestStream ? checkAtStart(isAllowed) : checkMessage(isAllowed);
    return new ServerInterceptingCall(call, { start: (next) => next(listener) });
  };
}

/** The address of a peer. grpc-js appends the port and omits the brackets of IPv6. A Unix socket has none. */
function addressIn(peer: string): string | undefined {
  return peer === "unknown" ? undefined : peer.replace(/:\d+$/, "");
}

type IsAllowed = (metadata: Metadata, message: unknown) => Promise<boolean>;

/** For streams: their handlers run as soon as the metadata arrives. */
function checkAtStart(isAllowed: IsAllowed): ServerListener {
  return {
    async onReceiveMetadata(metadata, next) {
      if (await isAllowed(metadata, undefined)) {
        next(metadata);
      }
    },
  };
}

/** For unary requests: their handlers run when the message arrives. */
function checkMessage(isAllowed: IsAllowed): ServerListener {
  let received = new Metadata();
  return {
    onReceiveMetadata(metadata, next) {
      received = metadata;
      next(metadata);
    },
    async onReceiveMessage(message, next) {
      if (await isAllowed(received, message)) {
        next(message);
      }
    },
  };
}

function toStatus({ grpc, detail, headers }: Refusal) {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, value);
  }
  const code: number = grpc;
  return { code, details: detail, metadata };
}

/**
 * The decision about a call; of several guards, that of the last one. Throws if
 * none checked it. It is stored by the metadata object, which interceptors after
 * the guard must pass on unchanged.
 */
export function accessOf({ metadata }: { readonly metadata: Metadata }): Decision {
  return savedDecision(metadata);
}
