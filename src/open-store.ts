import type { Settings } from "./config.js";
import type { Store } from "./store/store.js";

/** Opens the store that the settings name. Only the engine in use is loaded. */
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
