import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Settings } from "./config.js";
import { holdsStore, openStore } from "./open-store.js";
import type { Store } from "./store/store.js";

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
