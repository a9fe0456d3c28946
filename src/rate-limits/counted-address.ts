import type { ContextValues } from "@connectrpc/connect";
import { callKey } from "../caller.js";
import type { ReadAddressOf } from "../caller-address.js";
import { createGenerations } from "../generations.js";
import { type Address, homeOf } from "../networks.js";

/** What calls are counted by that come from an address. */
export type CountedAddressOf = (values: ContextValues) => string;

/** How many addresses each of two generations may keep. */
const generationSize = 1_000;

/** Creates what reads the address of a connection once, as long as calls come over it. */
export function createCountedAddressOf(readAddressOf: ReadAddressOf): CountedAddressOf {
  const known = createGenerations<string>(generationSize, 1);
  return (values) => {
    const { address, headers } = values.get(callKey).peer;
    // What a proxy says is not kept: anybody can write it, at any length.
    if (headers["x-forwarded-for"] !== undefined) {
      return countedAddress(readAddressOf({ values }));
    }
    return (
      known.get(address, 0) ?? known.add(address, 0, countedAddress(readAddressOf({ values })), 1)
    );
  };
}

function countedAddress(address: Address | undefined): string {
  return address ? homeOf(address) : "";
}
