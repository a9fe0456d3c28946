import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../call.js";
import type { Settings } from "../config/settings.js";
import { accessOf } from "../contract/methods.js";
import { differentKeys, type KeyPlaces, readPresentedKey } from "../contract/presented-key.js";
import { invalidRequest } from "../errors.js";
import { memoize } from "../lib/cache.js";

/** Returns the caller's key in the headers of a call, or the empty string. Throws if they carry two different keys. */
export type ReadKey = (call: Pick<Call, "method" | "header" | "isRepeated">) => string;

/** The key is in the configured header, or in the header that the method's access option names. */
export function createReadKey({
  keyHeader,
  bearerKeys,
}: Pick<Settings, "keyHeader" | "bearerKeys">): ReadKey {
  const placesOf = memoize((method: DescMethod): KeyPlaces => {
    const access = accessOf(method);
    return {
      keyHeader: (access.keyHeader || keyHeader).toLowerCase(),
      bearer: access.keyHeader === "" && (bearerKeys || access.authorizationHeader),
      basic: access.authorizationHeader,
    };
  });
  return (call) => {
    const places = placesOf(call.method);
    const key = readPresentedKey(call.header, places);
    // Node keeps only the first of several.
    const isAmbiguous = (places.bearer || places.basic) && call.isRepeated("authorization");
    if (key === undefined || isAmbiguous) {
      throw invalidRequest({ field: "authorization", message: differentKeys });
    }
    return key;
  };
}
