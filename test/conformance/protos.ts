import { readFileSync } from "node:fs";
import {
  createFileRegistry,
  type DescMessage,
  type DescService,
  fromBinary,
  type Message,
} from "@bufbuild/protobuf";
import { type Any, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Code } from "@connectrpc/connect";

/** The messages and services of the runner's protos, by their names within the package. */
export interface Protos {
  message(name: string): DescMessage;
  service(name: string): DescService;
}

/** Reads the file that `buf build` writes. */
export function readProtos(path: string): Protos {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(path)));
  function find<T>(get: (name: string) => T | undefined, name: string): T {
    const found = get(`connectrpc.conformance.v1.${name}`);
    if (!found) {
      throw new Error(`The runner's protos do not declare ${name}.`);
    }
    return found;
  }
  return {
    message: (name) => find((typeName) => registry.getMessage(typeName), name),
    service: (name) => find((typeName) => registry.getService(typeName), name),
  };
}

/*
 * The message fields that the server under test uses. They are declared by hand,
 * because the runner's protos are downloaded only when the runner is.
 */

/** The server configuration that the runner requests. */
export interface ServerCompatRequest extends Message {
  readonly useTls: boolean;
  /** 0 for the default of the server. */
  readonly messageReceiveLimit: number;
  readonly serverCreds?: { readonly cert: Uint8Array; readonly key: Uint8Array };
}

export interface Header {
  readonly name: string;
  readonly value: readonly string[];
}

export interface ErrorDefinition {
  readonly code: Code;
  readonly message?: string;
  readonly details: readonly Any[];
}

interface ResponseDefinition {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
}

/** The response to a call with one response. */
interface UnaryResponseDefinition extends ResponseDefinition {
  readonly response:
    | { readonly case: "responseData"; readonly value: Uint8Array }
    | { readonly case: "error"; readonly value: ErrorDefinition }
    | { readonly case: undefined; readonly value?: undefined };
}

/** The responses to a streaming call, and the error at the end, if any. */
export interface StreamResponseDefinition extends ResponseDefinition {
  readonly responseData: readonly Uint8Array[];
  readonly error?: ErrorDefinition;
}

export interface UnaryRequest extends Message {
  readonly responseDefinition?: UnaryResponseDefinition;
}

export interface StreamRequest extends Message {
  readonly responseDefinition?: StreamResponseDefinition;
  /** Whether each request gets its response before the next is sent. */
  readonly fullDuplex?: boolean;
}

/** The call as the server received it. */
export type RequestInfo = {
  readonly requestHeaders?: readonly Header[];
  readonly timeoutMs?: bigint | undefined;
  readonly requests: readonly Any[];
  readonly connectGetInfo?: { readonly queryParams: readonly Header[] } | undefined;
};

export type Payload = {
  readonly payload: {
    readonly data?: Uint8Array | undefined;
    readonly requestInfo?: RequestInfo | undefined;
  };
};
