import type { Settings, StoreSettings } from "./config.js";
import type { Store } from "./store/store.js";

/** Opens the store that the settings name. Here alone an engine is chosen, and only the one in use is loaded. */
export async function openStore({
  store: settings,
  eventRetention,
}: Pick<Settings, "store" | "eventRetention">): Promise<Store> {
  if (settings.kind === "mongodb") {
    const { openMongoStore } = await import("./store/mongo.js");
    return openMongoStore({ ...settings, eventRetention });
  }
  const { openLmdbStore } = await import("./store/lmdb.js");
  return openLmdbStore({ path: settings.dataDir, eventRetention });
}

/** Whether what the settings name holds a store; to find out makes nothing there. */
export async function holdsStore(settings: StoreSettings): Promise<boolean> {
  if (settings.kind === "mongodb") {
    const mongo = await import("./store/mongo/holds-store.js");
    return mongo.holdsStore(settings.uri, settings.database);
  }
  const folder = await import("./store/lmdb/folder.js");
  return folder.holdsStore(settings.dataDir);
}
