import {
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { defaultKeyHeader } from "../key-header.js";

export interface ClientOptions {
  /** Where the service is, for example `http://localhost:8080`. */
  readonly url: string;
  /** The key to call with, or what answers it: it is asked before each call, so a key can be rotated. */
  readonly key: string | (() => string | Promise<string>);
  /** The header that carries the key, where the operator chose another one. */
  readonly keyHeader?: string | undefined;
}

/** The methods of the service, typed, one object for each of its services. */
export interface LatchkeyClient {
  readonly applications: Client<typeof ApplicationService>;
  readonly sessions: Client<typeof SessionService>;
  readonly access: Client<typeof AccessService>;
  readonly events: Client<typeof EventService>;
}

/** Makes a client of any transport, of whichever protocol. */
export function createClientOn(transport: Transport): LatchkeyClient {
  return {
    applications: createClient(ApplicationService, transport),
    sessions: createClient(SessionService, transport),
    access: createClient(AccessService, transport),
    events: createClient(EventService, transport),
  };
}

/** Puts the key on every call. */
export function sendKey({ key, keyHeader = defaultKeyHeader }: ClientOptions): Interceptor {
  return (next) => async (request) => {
    const present = typeof key === "string" ? key : await inTime(key, request.signal);
    setKey(request.header, keyHeader, present);
    return next(request);
  };
}

/** Whoever answers the key may take for ever: the call still ends when it is given up. */
function inTime(key: () => string | Promise<string>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) {
      abort();
    }
    Promise.resolve()
      .then(key)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

function setKey(header: Headers, name: string, key: string): void {
  try {
    header.set(name, key);
  } catch {
    // What was thrown tells the key.
    throw new ConnectError(
      `The key cannot be sent in the header ${name}: one of them has characters that no header has.`,
      Code.Unauthenticated,
    );
  }
}
