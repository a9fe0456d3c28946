import {
  create,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../../src/auth/caller.js";
import { createGrantGuard } from "../../../src/auth/grants.js";
import { createKeyring } from "../../../src/auth/keys.js";
import { type Call, contextValuesOf } from "../../../src/call.js";
import { readSettings } from "../../../src/config/settings.js";
import type { Dependencies } from "../../../src/dependencies.js";
import { Cancellation } from "../../../src/lib/cancellation.js";
import { parseAddress } from "../../../src/lib/networks.js";
import type { Commit, HandlerChange, HandlerDecision } from "../../../src/services/commit.js";
import type { LiveRecords, Reads, RecordKind, Snapshot } from "../../../src/store/port/change.js";

/** What a decision is about: the target as it is stored, and the caller with its current records. */
export interface Situation {
  readonly target?: LiveRecords[RecordKind] | undefined;
  readonly caller: Caller;
  readonly now: number;
}

type AnyChange = HandlerChange<RecordKind, Reads, object>;
export type AnyDecision = HandlerDecision<RecordKind, object>;

/** What handlers depend on, without a store: a change is decided and recorded, but not written. */
export function createDecidingHandlers<H>(
  createHandlers: (dependencies: Dependencies) => H,
  situation: () => Situation,
): { readonly handlers: H; decided(): { change: AnyChange; decision: AnyDecision } } {
  let last: { change: AnyChange; decision: AnyDecision } | undefined;
  const commit = async (_context: unknown, change: AnyChange) => {
    const decision = decideOn(change, situation());
    last = { change, decision };
    return decision.reply;
  };
  const settings = readSettings({});
  const readAddressOf = () => parseAddress("192.0.2.1");
  const dependencies = {
    commit: commit as unknown as Commit,
    settings,
    keyring: createKeyring(),
    grantGuard: createGrantGuard("held"),
    clock: () => situation().now,
    store: { id: "test", now: () => situation().now, applications: {}, sessions: {} },
    rateLimits: { countOpenedSession: () => undefined, countRefusedSession: () => {} },
    countSession: () => {},
    readAddressOf,
    createSealer: () => ({}),
  };
  return {
    handlers: createHandlers(dependencies as unknown as Dependencies),
    decided() {
      if (!last) {
        throw new Error("Nothing was decided.");
      }
      return last;
    },
  };
}

/** Decides a change on a situation. */
export function decideOn(change: AnyChange, { target, caller, now }: Situation): AnyDecision {
  const snapshot = { id: change.target.id, target } as unknown as Snapshot<RecordKind, Reads>;
  return change.decide(snapshot, now, caller);
}

/** The context of a call of a method. */
export function contextOf(method: DescMethodUnary, caller: Caller): HandlerContext {
  const call = {
    method,
    requestId: "request",
    peer: { address: "127.0.0.1", headers: {} },
    cancellation: new Cancellation(),
  };
  const values = contextValuesOf({
    call: call as unknown as Call,
    caller,
    reauthorize: async () => {},
  });
  return { method, values } as unknown as HandlerContext;
}

/** A request message with the given fields. */
export function requestOf<M extends DescMethodUnary>(
  method: M,
  fields: MessageInitShape<M["input"]>,
): Message & Record<string, unknown> {
  return create(method.input, fields) as Message & Record<string, unknown>;
}
