import type { Rate } from "../../config/parsers.js";

/** Token buckets (of rate limits) that are shared by all processes of a store. */
export interface RateCounts {
  /**
   * Takes up to `most` tokens from a bucket in one atomic step, or none if it
   * holds fewer than `least` (default 1). A new bucket is full. It is refilled
   * by the store's clock, so that the clocks of processes may differ. A failure
   * of the store may undo the latest draws.
   */
  draw(name: string, rate: Rate, most: number, least?: number): Promise<TakenTokens>;
}

export interface TakenTokens {
  readonly tokens: number;
  /** Milliseconds until the next token, or until `least` tokens if there were too few. */
  readonly wait: number;
}
