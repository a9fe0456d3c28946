import { createGenerationalCache } from "../../lib/cache.js";
import { isInOneOf, type Network, readAddress, readNetwork } from "../../lib/networks.js";
import { isAllowedOrigin } from "../../lib/web-origin.js";
import type { Restrictions } from "../grants.js";

/** Why a key may not be used from where it is, by words that never change their meaning. */
export type PlaceRefusal = "origin_not_allowed" | "address_not_allowed";

/** What is looked at of an application. Its version differs with each change of it. */
type RestrictedRecord = Restrictions & { readonly id: string; readonly version: number };

/** Tells from where the keys of an application, and those of its sessions, may be used. */
export interface PlaceCheck {
  /** Whether a web page of this origin may use them, or where it is absent, whoever is no web page. */
  allowsOrigin(application: RestrictedRecord, origin: string | undefined): boolean;

  /** Whether they may be used from this address. What is no address is in no network. */
  allowsAddress(application: RestrictedRecord, address: string | undefined): boolean;
}

/** How many networks each of two generations may keep. */
const generationNetworks = 20_000;
/** Of so many lists that are read one is kept. */
const readPerKept = 8;

/** Creates a check that reads the networks of an application once per version, as long as they are asked for often. */
export function createPlaceCheck(): PlaceCheck {
  const generations = createGenerationalCache<readonly Network[]>(generationNetworks, readPerKept);

  function networksOf({ id, version, allowedCidrs }: RestrictedRecord): readonly Network[] {
    const kept = generations.get(id, version);
    if (kept) {
      return kept;
    }
    const networks = allowedCidrs.map(readNetwork).flatMap((it) => ("fault" in it ? [] : [it]));
    return generations.shouldAdmit()
      ? generations.add(id, version, networks, networks.length)
      : networks;
  }

  return {
    allowsOrigin({ allowedOrigins }, origin) {
      return (
        allowedOrigins.length === 0 ||
        (origin !== undefined && isAllowedOrigin(allowedOrigins, origin))
      );
    },

    allowsAddress(application, text = "") {
      if (application.allowedCidrs.length === 0) {
        return true;
      }
      const address = readAddress(text);
      return address !== undefined && isInOneOf(networksOf(application), address);
    },
  };
}
