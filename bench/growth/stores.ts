import { join } from "node:path";
import { type Keys, seed } from "../seed.js";
import type { StoreEnvironment } from "../servers.js";
import { tell } from "../stage.js";

/** An embedded store with so many applications. */
export interface GrownStore {
  readonly size: number;
  readonly keys: Keys;
  readonly environment: StoreEnvironment;
  readonly folder: string;
  /** Seconds that it took to fill it. */
  readonly seconds: number;
}

/** Fills a store of each size. */
export async function growStores(
  folder: string,
  sizes: readonly number[],
): Promise<readonly GrownStore[]> {
  const stores: GrownStore[] = [];
  for (const size of sizes) {
    tell(`growth: making ${size.toLocaleString("en")} applications`);
    const own = join(folder, `growth-${size}`);
    const environment = { DATA_DIR: own };
    const started = performance.now();
    const keys = await seed(environment, size);
    const seconds = (performance.now() - started) / 1000;
    stores.push({ size, keys, environment, folder: own, seconds });
  }
  return stores;
}
