import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Settings, StoreSettings } from "../config/settings.js";
import type { Store } from "./port/store.js";

/** Opens the configured store. Loads only the engine in use. */
export async function openStore({
  store: settings,
  eventRetention,
}: Pick<Settings, "store" | "eventRetention">): Promise<Store> {
  if (settings.kind === "mongodb") {
    const { openMongoStore } = await import("./mongo/store.js");
    return openMongoStore({ ...settings, eventRetention });
  }
  const { openLmdbStore } = await import("./lmdb/store.js");
  return openLmdbStore({ path: settings.dataDir, eventRetention });
}

/** Whether the configured store exists. Creates nothing. */
async function storeExists(settings: StoreSettings): Promise<boolean> {
  if (settings.kind === "mongodb") {
    const mongo = await import("./mongo/connect.js");
    return mongo.storeExists(settings.uri, settings.database);
  }
  const folder = await import("./lmdb/folder.js");
  return folder.storeExists(settings.dataDir);
}

/** Opens the configured store, or throws if the data folder has none: opening would create it. */
export async function openExistingStore(settings: Settings): Promise<Store> {
  const { store } = settings;
  if (store.kind === "embedded" && !(await storeExists(store))) {
    throw new Error(`No data found in ${store.dataDir}. Set DATA_DIR to the data folder.`);
  }
  return openStore(settings);
}

/** Opens the store for reading. If none exists, opens a temporary empty one, which is removed on close. */
export async function openStoreForReading(settings: Settings): Promise<Store> {
  if (await storeExists(settings.store)) {
    return openStore(settings);
  }
  const dataDir = await mkdtemp(join(tmpdir(), "latchkey-"));
  const store = await openStore({ ...settings, store: { kind: "embedded", dataDir } });
  return {
    ...store,
    async close() {
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
