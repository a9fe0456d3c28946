/** Guards for @grpc/grpc-js: `latchkey/client/grpc`. */
import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerListener,
  status,
} from "@grpc/grpc-js";
import type { GuardAnswer } from "./check-request.js";
import type { Guard } from "./guard.js";
import type { Refusal } from "./middleware.js";
import { createGate, keepAnswer, keptAnswer, type MiddlewareOptions } from "./middleware.js";

/** A call that wants in. */
export interface GuardedCall {
  /** The method, for example `/shop.v1.Tokens/GetToken`. */
  readonly path: string;
  readonly metadata: Metadata;
  /**
   * The message, where the method takes a single one. A stream of messages is
   * checked once, before the first of them, and this is then `undefined`.
   */
  readonly message: unknown;
}

export interface GuardInterceptorOptions extends MiddlewareOptions<GuardedCall> {
  /** Told what a function in the options threw, which grpc-js has no place for. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Creates an interceptor, for servers, that lets in only those who may.
 *
 *     const permission = ({ path }: GuardedCall) => permissions[path] ?? "nobody:holds";
 *     new Server({ interceptors: [createGuardInterceptor(guard, { permission })] });
 *
 * All others are refused with UNAUTHENTICATED, PERMISSION_DENIED,
 * INVALID_ARGUMENT or UNAVAILABLE, and no handler runs. Where a function in the
 * options throws, the call ends with INTERNAL.
 *
 * The interceptors of a server are there for all its methods. Leave some open,
 * as those of a health service, by an interceptor around this one:
 *
 *     (method, call) =>
 *       isOpen(method.path) ? new ServerInterceptingCall(call) : guarded(method, call)
 */
export function createGuardInterceptor(
  guard: Guard,
  { onError, ...options }: GuardInterceptorOptions,
): ServerInterceptor {
  const gate = createGate(guard, options);

  function report(error: unknown): void {
    try {
      onError?.(error);
    } catch {
      // Who listens must not end the process.
    }
  }

  return ({ path, requestStream }, call) => {
    async function isLetIn(metadata: Metadata, message: unknown): Promise<boolean> {
      try {
        const sent = {
          key: metadata.get(gate.keyHeader),
          origin: metadata.get("origin"),
          address: addressIn(call.getPeer()),
        };
        const { answer, refusal } = await gate.admit({ path, metadata, message }, sent);
        if (refusal) {
          call.sendStatus(toStatus(refusal));
          return false;
        }
        keepAnswer(metadata, answer);
        return true;
      } catch (error) {
        call.sendStatus({ code: status.INTERNAL, details: "The key could not be checked." });
        report(error);
        return false;
      }
    }

    const listener = requestStream ? checkAtStart(isLetIn) : checkMessage(isLetIn);
    return new ServerInterceptingCall(call, { start: (next) => next(listener) });
  };
}

/** The address of a peer, which grpc-js tells with its port, and without brackets. */
function addressIn(peer: string): string {
  return peer.replace(/:\d+$/, "");
}

type IsLetIn = (metadata: Metadata, message: unknown) => Promise<boolean>;

/** For handlers that run as soon as the metadata is there. */
function checkAtStart(isLetIn: IsLetIn): ServerListener {
  return {
    async onReceiveMetadata(metadata, next) {
      if (await isLetIn(metadata, undefined)) {
        next(metadata);
      }
    },
  };
}

/** For handlers that run when their message is there. */
function checkMessage(isLetIn: IsLetIn): ServerListener {
  let received = new Metadata();
  return {
    onReceiveMetadata(metadata, next) {
      received = metadata;
      next(metadata);
    },
    async onReceiveMessage(message, next) {
      if (await isLetIn(received, message)) {
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
 * What the guard said of the call of a handler; of several guards, the last.
 * Throws where none was asked. It is found by the metadata, which interceptors
 * between the guard and the handler have to pass on as it is.
 */
export function accessOf({ metadata }: { readonly metadata: Metadata }): GuardAnswer {
  return keptAnswer(metadata);
}
