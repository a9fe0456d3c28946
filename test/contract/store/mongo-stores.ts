import type { Db } from "mongodb";
import type { Clock } from "../../../src/store/port/store.js";
import { useMongo } from "../../support/mongo/mongo.js";
import type { OperableStore } from "../../support/store/operations.js";
import type { OpenStore, TestStore } from "./subject.js";

/** Opens stores for the contract. The tests of a file share a database and two stores, because creating them is slow. */
export function useContractStores(): { open: OpenStore; openEmpty: OpenStore } {
  const mongo = useMongo();
  let db: Db | undefined;
  let first: Promise<OperableStore> | undefined;
  let second: Promise<OperableStore> | undefined;

  async function open(clock: Clock): Promise<TestStore> {
    db ??= mongo.createDatabase();
    const database = db;
    const openStore = () => mongo.open(database, { clock });
    first ??= openStore();
    const opened: OperableStore[] = [];
    return {
      store: await first,
      another: () => {
        second ??= openStore();
        return second;
      },
      async reopen() {
        const store = await openStore();
        opened.push(store);
        return store;
      },
      async release() {
        await Promise.all(opened.map((store) => store.close()));
      },
    };
  }

  return {
    open,

    async openEmpty(clock) {
      const opened = await open(clock);
      const collections = (await db?.collections()) ?? [];
      const emptied = collections.filter(({ collectionName }) => collectionName !== "log_position");
      await Promise.all(emptied.map((collection) => collection.deleteMany()));
      return opened;
    },
  };
}
