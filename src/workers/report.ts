import type { AddressInfo } from "node:net";

/** What a worker tells the process that started it. */
export type Report =
  | { readonly listening: AddressInfo }
  /** Why it ends, in words for the operator. */
  | { readonly failure: string };
