import { invalidRequest, type Problem } from "../errors.js";
import { type Address, addressRule, parsePeerAddress } from "../lib/networks.js";

/** Reads the `address` of a request, with or without a port. Returns the problem if it is invalid. */
export function readAddress(text: string): Address | Problem {
  return (
    parsePeerAddress(text) ??
    invalidRequest({
      field: "address",
      message: addressRule,
      code: "type.address",
    })
  );
}
