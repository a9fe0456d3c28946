import { createGenerationalCache } from "../../lib/cache.js";
import {
  isInAnyNetwork,
  type Network,
  parseNetwork,
  parsePeerAddress,
} from "../../lib/networks.js";
import { isAllowedOrigin } from "../../lib/web-origin.js";
import type { Restrictions } from "../grants.js";

/** Stable codes for a violated restriction. */
export type RestrictionDenial = "origin_not_allowed" | "address_not_allowed";

/** The restrictions of an application. The version changes with every update. */
type RestrictedRecord = Restrictions & { readonly id: string; readonly version: number };

/** Checks the restrictions on the keys of an application and of its sessions. */
interface RestrictionCheck {
  /** Whether the keys may be used from this web origin. It is `undefined` for clients that are not browsers. */
  allowsOrigin(application: RestrictedRecord, origin: string | undefined): boolean;

  /** Whether the keys may be used from this address. An invalid address is in no network. */
  allowsAddress(application: RestrictedRecord, address: string | undefined): boolean;

  /** Returns the first restriction that a request violates. Reads the address only if networks are restricted. */
  findDenial(application: RestrictedRecord, request: RequestSource): RestrictionDenial | undefined;
}

/** Where a request came from. */
interface RequestSource {
  readonly origin?: string | undefined;
  readonly address?: string | undefined;
}

/** The number of parsed networks in each of the two cache generations. */
const generationNetworks = 20_000;
/** Admits one of this many parsed lists to the cache. */
const missesPerAdmission = 8;

/** Creates a check that caches the parsed networks of frequently used applications by version. */
export function createRestrictionCheck(): RestrictionCheck {
  const cache = createGenerationalCache<readonly Network[]>(generationNetworks, missesPerAdmission);

  function networksOf({ id, version, allowedCidrs }: RestrictedRecord): readonly Network[] {
    const cached = cache.get(id, version);
    if (cached) {
      return cached;
    }
    const networks = allowedCidrs.map(parseNetwork).flatMap((it) => ("problem" in it ? [] : [it]));
    return cache.shouldAdmit() ? cache.add(id, version, networks, networks.length) : networks;
  }

  function allowsOrigin({ allowedOrigins }: RestrictedRecord, origin: string | undefined): boolean {
    return (
      allowedOrigins.length === 0 ||
      (origin !== undefined && isAllowedOrigin(allowedOrigins, origin))
    );
  }

  function allowsAddress(application: RestrictedRecord, text = ""): boolean {
    if (application.allowedCidrs.length === 0) {
      return true;
    }
    const address = parsePeerAddress(text);
    return address !== undefined && isInAnyNetwork(networksOf(application), address);
  }

  function findDenial(
    application: RestrictedRecord,
    request: RequestSource,
  ): RestrictionDenial | undefined {
    if (!allowsOrigin(application, request.origin)) {
      return "origin_not_allowed";
    }
    return application.allowedCidrs.length === 0 || allowsAddress(application, request.address)
      ? undefined
      : "address_not_allowed";
  }

  return { allowsOrigin, allowsAddress, findDenial };
}
