import { createHash } from "node:crypto";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createContextKey, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.js";
import type { ReadKey } from "../auth/read-key.js";
import { callOf, contextValuesOf } from "../call.js";
import {
  idempotencyKeyHeader,
  idempotencyKeyPattern,
  replayedHeader,
} from "../contract/headers.js";
import { containsKeyPrefix } from "../contract/key-format.js";
import { isReplayable, methodName } from "../contract/methods.js";
import { updatedPaths, updateMaskOf } from "../contract/update-mask.js";
import {
  idempotencyConflict,
  idempotencyKeyReused,
  invalidRequest,
  type Problem,
  replayNeedsOriginalKey,
} from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import { day } from "../lib/time-units.js";
import type { NewResponse, ResponseStore } from "../store/port/change.js";
import { AlreadyApplied } from "../store/port/errors.js";
import { createResponseSeal, type ResponseSeal, responseId } from "./sealed-response.js";

/** Milliseconds for which a response can be replayed. */
const responseLifetime = day;

const header = idempotencyKeyHeader.toLowerCase();

/** How to store the response of a call for replays. */
interface ReplayOptions {
  readonly id: string;
  seal(response: object): NewResponse;
}

/** Given to a handler whose response must be stored together with its change, so that it can be replayed. */
export const replayOptionsKey = createContextKey<ReplayOptions | undefined>(undefined, {
  description: "how to store the response",
});

type Handler = (request: Message, context: HandlerContext) => MaybePromise<object>;

/** Makes methods that accept an Idempotency-Key run once per key. */
type WithIdempotency = <S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
) => ServiceImpl<S>;

/**
 * Replays stored responses. It wraps handlers and is not a step of the pipeline: it
 * needs a validated message and sets a response header, which handlers can do
 * in every protocol.
 *
 * The response is stored in the same transaction as the change, so exactly the
 * calls that succeeded have one.
 */
export function createIdempotency(responses: ResponseStore, readKey: ReadKey): WithIdempotency {
  function once(method: DescMethodUnary, handler: Handler): Handler {
    const name = methodName(method);

    async function runOnce(request: Message, context: HandlerContext, headerValue: string) {
      const authorized = callOf(context);
      const { caller } = authorized;
      const idempotencyKey = readCallersKey(headerValue, caller);
      const id = responseId(idOf(caller), name, idempotencyKey);
      const apiKey = readKey(authorized.call);
      const seal = createResponseSeal({ apiKey, idempotencyKey }, id);
      const fingerprint = fingerprintOf(method.input, request);

      /** Returns the stored response, if there is one. */
      async function replay(): Promise<Message | undefined> {
        const sealed = await responses.find(id);
        if (!sealed) {
          return undefined;
        }
        await authorized.reauthorize();
        const message = openResponse(method.output, seal, sealed, fingerprint);
        context.responseHeader.set(replayedHeader, "true");
        return message;
      }

      const replayed = await replay();
      if (replayed) {
        return replayed;
      }
      const replayOptions = {
        id,
        seal: (response: object) => ({
          sealed: seal.seal({ fingerprint, response: bytesOf(method.output, response) }),
          ttl: responseLifetime,
        }),
      };
      const values = contextValuesOf(authorized).set(replayOptionsKey, replayOptions);
      try {
        return await handler(request, Object.create(context, { values: { value: values } }));
      } catch (reason) {
        if (!(reason instanceof AlreadyApplied)) {
          throw reason;
        }
        // By another call, or by an attempt of this one whose result was lost.
        const made = await replay();
        if (!made) {
          throw idempotencyConflict();
        }
        return made;
      }
    }

    return (request, context) => {
      const headerValue = context.requestHeader.get(header);
      return headerValue === null
        ? handler(request, context)
        : runOnce(request, context, headerValue);
    };
  }

  return (service, handlers) => {
    const all = handlers as Record<string, unknown>;
    const idempotent = service.methods.filter(isReplayable).map((method) => {
      const handler = all[method.localName] as Handler;
      return [method.localName, once(method, handler)];
    });
    return { ...handlers, ...Object.fromEntries(idempotent) };
  };
}

/** The minimum length of an Idempotency-Key if the API key is public. */
const minPublicLength = 20;

/** Reads the Idempotency-Key of a caller, or throws. */
function readCallersKey(headerValue: string, caller: Caller): string {
  const idempotencyKey = parseIdempotencyKey(headerValue);
  if (idempotencyKey === undefined) {
    throw invalidKey(
      "must be 1 to 255 visible ASCII characters, for example a UUID, bare or in double quotes",
    );
  }
  const problem = findKeyProblem(idempotencyKey, caller);
  if (problem !== undefined) {
    throw invalidKey(problem);
  }
  return idempotencyKey;
}

function invalidKey(message: string): Problem {
  return invalidRequest({ field: idempotencyKeyHeader, message });
}

/** Parses the header. A key in double quotes equals the bare one. Returns `undefined` if it is not valid. */
export function parseIdempotencyKey(headerValue: string): string | undefined {
  if (!idempotencyKeyPattern.test(headerValue)) {
    return undefined;
  }
  return headerValue.startsWith('"')
    ? headerValue.slice(1, -1).replace(/\\(.)/g, "$1")
    : headerValue;
}

function findKeyProblem(
  idempotencyKey: string,
  { application, session }: Caller,
): string | undefined {
  if (containsKeyPrefix(idempotencyKey)) {
    return "must not contain an API key, which is a secret: send a random value";
  }
  const isShared = application.type === "public" && !session;
  return isShared && idempotencyKey.length < minPublicLength
    ? `must be random and at least ${minPublicLength} characters long with the key of a public ` +
        "application: anyone who guesses it receives the same session"
    : undefined;
}

/** Decrypts a stored response. Throws if it belongs to another API key or another request. */
function openResponse(
  schema: DescMessage,
  seal: ResponseSeal,
  sealed: Uint8Array,
  fingerprint: Buffer,
): Message {
  const stored = seal.open(sealed);
  if (!stored) {
    throw replayNeedsOriginalKey();
  }
  if (!fingerprint.equals(stored.fingerprint)) {
    throw idempotencyKeyReused();
  }
  return fromBinary(schema, stored.response);
}

function idOf({ session, application }: Caller): string {
  return session?.id ?? application.id;
}

/** Equal for equal messages in every protocol. */
function fingerprintOf(schema: DescMessage, message: Message): Buffer {
  const normalized = { ...message, ...sortedMapsOf(schema, message), ...maskOf(schema, message) };
  return createHash("sha256").update(bytesOf(schema, normalized)).digest();
}

/** The maps with sorted pairs. Clients send them in any order, which may differ in a repeated call. */
function sortedMapsOf({ fields }: DescMessage, message: Message): object {
  const given = message as unknown as Readonly<Record<string, object>>;
  const maps = fields.flatMap(({ fieldKind, localName }) => {
    const pairs = fieldKind === "map" ? Object.entries(given[localName] ?? {}) : [];
    return pairs.length > 1 ? [[localName, Object.fromEntries(pairs.sort(byKey))]] : [];
  });
  return Object.fromEntries(maps);
}

/** The update mask, if there is one. REST fills it from the body, and other protocols may leave it out. */
function maskOf(schema: DescMessage, message: Message): object {
  const mask = updateMaskOf(schema);
  return mask
    ? { [mask.field.localName]: create(FieldMaskSchema, { paths: updatedPaths(mask, message) }) }
    : {};
}

function byKey([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** The binary form of a message: fields in order, without unknown ones. */
function bytesOf(schema: DescMessage, init: object): Uint8Array {
  const message = create(schema, init as MessageInitShape<DescMessage>);
  return toBinary(schema, message, { writeUnknownFields: false });
}
