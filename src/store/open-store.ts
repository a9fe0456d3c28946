import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Settings, StoreSettings } from "../config/settings.js";
import type { Store } from "./port/store.js";

/** Opens the store that the settings name. Here alone an engine is chosen, and only the one in use is loaded. */
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

/** Whether what the settings name holds a store; to find out makes nothing there. */
export async function holdsStore(settings: StoreSettings): Promise<boolean> {
  if (settings.kind === "mongodb") {
    const mongo = await import("./mongo/connect.js");
    return mongo.holdsStore(settings.uri, settings.database);
  }
  const folder = await import("./lmdb/folder.js");
  return folder.holdsStore(settings.dataDir);
}

/** Opens the store that the settings name, or throws where there is none yet: a folder would become one. */
export async function openStoreThere(settings: Settings): Promise<Store> {
  const { store } = settings;
  if (store.kind === "embedded" && !(await holdsStore(store))) {
    throw new Error(`${store.dataDir} has no data: let DATA_DIR name the folder that has.`);
  }
  return openStore(settings);
}

/** Opens the same to look at only: where there is none yet, an empty one elsewhere, which goes when it is closed. */
export async function openStoreToLookAt(settings: Settings): Promise<Store> {
  if (await holdsStore(settings.store)) {
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
