import type { AddressInfo } from "node:net";
import type { Snapshot } from "../metrics/family.js";

/** What a worker tells the process that started it. */
export type Report =
  | { readonly listening: AddressInfo }
  /** Why it ends, in words for the operator. */
  | { readonly failure: string }
  /** What it has counted so far, as it was asked. */
  | { readonly snapshot: Snapshot }
  /** That it wants to know what all have counted, under a number of its own. */
  | { readonly scrape: number };

/** What a worker is told. */
export type Order =
  /** To tell what it has counted so far. */
  | { readonly ask: "snapshot" }
  /** What all have counted, which it has asked for under this number. */
  | { readonly scraped: number; readonly text: string };
