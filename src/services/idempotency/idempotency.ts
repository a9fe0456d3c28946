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
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Caller, callerOf, callKey, readmissionOf } from "../../auth/caller.js";
import {
  idempotencyKeyHeader,
  idempotencyKeyPattern,
  replayedHeader,
} from "../../contract/headers.js";
import { holdsKey } from "../../contract/key-format.js";
import { isReplayable } from "../../contract/methods.js";
import {
  idempotencyConflict,
  idempotencyKeyReused,
  invalidRequest,
  sealedWithOtherKey,
} from "../../errors.js";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import type { AnswerStore } from "../../store/port/audit.js";
import { AnswerKept } from "../../store/port/errors.js";
import { type ResponseSeal, responseId, createResponseSeal } from "./sealed-response.js";

/** How long an answer can be given again, in milliseconds. */
const answerLifetime = 24 * 3_600_000;

const header = idempotencyKeyHeader.toLowerCase();

type Handler = (request: Message, context: HandlerContext) => MaybePromise<object>;

/** Makes the handlers of methods that may be called again with the same Idempotency-Key do their work once. */
export type WithIdempotency = <S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
) => ServiceImpl<S>;

/**
 * Creates what gives answers again. It stands around the handlers, behind all
 * checks, and not among the interceptors: it needs a message that is valid,
 * and sets a header of the answer, which handlers can do behind every door.
 *
 * The answer is written in one step with the change that it tells of, so a
 * call that succeeded has one, and a call that did not has none.
 */
export function createIdempotency(answers: AnswerStore, keyHeader: string): WithIdempotency {
  function once(method: DescMethodUnary, handler: Handler): Handler {
    const name = `${method.parent.typeName}/${method.name}`;

    async function answerOnce(request: Message, context: HandlerContext, idempotencyKey: string) {
      const caller = callerOf(context);
      checkKey(idempotencyKey, caller);
      const id = responseId(idOf(caller), name, idempotencyKey);
      const apiKey = context.requestHeader.get(keyHeader) ?? "";
      const seal = createResponseSeal({ apiKey, idempotencyKey }, id);
      const fingerprint = fingerprintOf(method.input, request);

      const sealed = await answers.find(id);
      if (sealed) {
        await readmissionOf(context)();
        const message = answerIn(method.output, seal, sealed, fingerprint);
        context.responseHeader.set(replayedHeader, "true");
        return message;
      }
      const keepAnswer = {
        id,
        seal: (answer: object) => ({
          sealed: seal.seal({ fingerprint, response: bytesOf(method.output, answer) }),
          ttl: answerLifetime,
        }),
      };
      context.values.get(callKey).keepAnswer = keepAnswer;
      try {
        return await handler(request, context);
      } catch (reason) {
        throw reason instanceof AnswerKept ? idempotencyConflict() : reason;
      }
    }

    return (request, context) => {
      const idempotencyKey = context.requestHeader.get(header);
      return idempotencyKey === null
        ? handler(request, context)
        : answerOnce(request, context, idempotencyKey);
    };
  }

  return (service, handlers) => {
    const all = handlers as Record<string, unknown>;
    const ours = service.methods.filter(isReplayable).map((method) => {
      const handler = all[method.localName] as Handler;
      return [method.localName, once(method, handler)];
    });
    return { ...handlers, ...Object.fromEntries(ours) };
  };
}

/** How long an Idempotency-Key must be where everybody has the API key. */
const leastPublicLength = 20;

function checkKey(idempotencyKey: string, caller: Caller): void {
  const message = faultIn(idempotencyKey, caller);
  if (message) {
    throw invalidRequest({ field: idempotencyKeyHeader, message });
  }
}

function faultIn(idempotencyKey: string, { application, session }: Caller): string | undefined {
  if (!idempotencyKeyPattern.test(idempotencyKey)) {
    return "must be one text of 1 to 255 visible ASCII characters, such as a UUID";
  }
  if (holdsKey(idempotencyKey)) {
    return "must not hold an API key, which is a secret: send a random text";
  }
  const isShared = application.type === "public" && !session;
  return isShared && idempotencyKey.length < leastPublicLength
    ? `must have at least ${leastPublicLength} characters with the key of a public application, ` +
        "and be random: whoever guesses it is given the same session"
    : undefined;
}

/** An answer that is kept, where the caller may read it and it answers this request. */
function answerIn(
  schema: DescMessage,
  seal: ResponseSeal,
  sealed: Uint8Array,
  fingerprint: Buffer,
): Message {
  const kept = seal.open(sealed);
  if (!kept) {
    throw sealedWithOtherKey();
  }
  if (!fingerprint.equals(kept.fingerprint)) {
    throw idempotencyKeyReused();
  }
  return fromBinary(schema, kept.response);
}

function idOf({ session, application }: Caller): string {
  return session?.id ?? application.id;
}

/** The same for the same message, by whichever protocol it came. */
function fingerprintOf(schema: DescMessage, message: Message): Buffer {
  return createHash("sha256").update(bytesOf(schema, message)).digest();
}

/** A message in the one binary form that it has: its fields in order, and none that we do not know. */
function bytesOf(schema: DescMessage, init: object): Uint8Array {
  const message = create(schema, init as MessageInitShape<DescMessage>);
  return toBinary(schema, message, { writeUnknownFields: false });
}
