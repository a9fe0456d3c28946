import type { Rate } from "../../config/parsers.js";

/** Token buckets that all processes have in common that share the store. */
export interface RateCounts {
  /**
   * Takes up to so many tokens out of the bucket of this name, or none where
   * it holds fewer than the least, which is one, in one atomic step. A bucket that nobody has taken from is full. It is refilled by the
   * store's clock, so that those of the processes may differ. What was taken
   * just before a failure of the store may be forgotten.
   */
  draw(name: string, rate: Rate, most: number, least?: number): Promise<Drawn>;
}

export interface Drawn {
  readonly tokens: number;
  /** In how many milliseconds there will be another one, where these were all, or where there were too few, enough. */
  readonly wait: number;
}
