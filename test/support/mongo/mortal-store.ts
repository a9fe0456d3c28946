import { Collection } from "mongodb";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import { type OperableStore, withOperations } from "../store/operations.js";
import { longTimeoutUri, withOptions } from "./uri.js";

const writes = [
  ...["insertOne", "insertMany", "updateOne", "replaceOne", "bulkWrite"],
  "findOneAndUpdate",
] as const;
const reads = ["find", "findOne", "aggregate", "countDocuments"] as const;

type AnyCall = (this: Collection, ...args: unknown[]) => unknown;

/** A store of an instance that can die, or be paused, at any of its commands. */
export interface MortalStore {
  readonly store: OperableStore;
  /** Lets the instance die at its nth write of a record or what belongs to it. Resolves when it has died. */
  dieAt(n: number, when: "before" | "after"): Promise<void>;
  /** No command of the instance is sent any more, until it is resumed. */
  pause(): void;
  /** The commands that were not sent are sent now, unless the instance has died. */
  resume(): void;
  close(): Promise<void>;
}

let count = 0;

export async function openMortalStore(
  database: string,
  { uri = longTimeoutUri, warn = (_: string) => {} } = {},
): Promise<MortalStore> {
  const appName = `mortal-${++count}`;
  const originals = new Map<string, AnyCall>();
  let held: (() => void)[] | undefined;
  let isDead = false;
  let killer: { left: number; readonly when: string; readonly die: () => void } | undefined;

  function isFatal({ collectionName }: Collection, name: string): boolean {
    const isCounted = (writes as readonly string[]).includes(name) && !/^log_/.test(collectionName);
    if (!killer || !isCounted) {
      return false;
    }
    killer.left--;
    return killer.left === 0;
  }

  /** Commands of the dead instance. They fail when the store closes, so that its loops end. */
  const pending = new Set<(reason: Error) => void>();
  const never = () => new Promise<never>((_, reject) => pending.add(reject));

  async function intercept(collection: Collection, name: string, call: () => unknown) {
    if (isDead) {
      return never();
    }
    const fatal = isFatal(collection, name) ? killer : undefined;
    if (fatal) {
      if (fatal.when === "after") {
        await call();
      }
      isDead = true;
      fatal.die();
      return never();
    }
    if (held) {
      await new Promise<void>((resolve) => held?.push(resolve));
    }
    return call();
  }

  const prototype = Collection.prototype as unknown as Record<string, AnyCall>;
  for (const name of [...writes, ...reads]) {
    const original = prototype[name] as AnyCall;
    originals.set(name, original);
    prototype[name] = function (...args) {
      if (this.db.client.options.appName !== appName) {
        return original.apply(this, args);
      }
      if ((writes as readonly string[]).includes(name) || name === "findOne") {
        return intercept(this, name, () => original.apply(this, args));
      }
      return original.apply(this, args);
    };
  }

  function resume(): void {
    const waiting = held ?? [];
    held = undefined;
    for (const send of waiting) {
      send();
    }
  }

  const opened = await openMongoStore({ uri: withOptions(uri, { appName }), database, warn });
  return {
    store: withOperations(opened),

    dieAt: (n, when) =>
      new Promise((resolve) => {
        isDead = false;
        killer = { left: n, when, die: resolve };
      }),

    pause() {
      held ??= [];
    },

    resume,

    async close() {
      [isDead, killer] = [false, undefined];
      for (const reject of pending) {
        reject(new Error("The instance has died."));
      }
      resume();
      await opened.close();
      for (const [name, original] of originals) {
        prototype[name] = original;
      }
    },
  };
}
