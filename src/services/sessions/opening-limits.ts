import { createHmac, hkdfSync } from "node:crypto";
import type { ReadAddressOf } from "../../auth/caller-address.js";
import type { Peer } from "../../call.js";
import type { Settings } from "../../config/settings.js";
import { clientNetworkKey, isInAnyNetwork } from "../../lib/networks.js";
import type { NewSession } from "../../store/port/records.js";

interface OpeningLimitsOptions {
  readonly settings: Pick<Settings, "peppers" | "trustedProxies" | "unauthorizedSessionQuota">;
  readonly storeId: string;
  readonly readAddressOf: ReadAddressOf;
}

/** The limits of a session that a client opens, and what is stored about its address. */
export type OpeningLimits = (
  applicationId: string,
  peer: Peer,
) => Pick<NewSession, "networkHash" | "quota">;

/** The unauthorized sessions of an application are divided by this for one network. */
const networkDivisor = 10;

const keySize = 32;
/** Hardly any two networks have the same hash. */
const hashSize = 8;

/**
 * One network has at most a tenth of the unauthorized sessions of an application, so
 * that it cannot lock out the others. The address is stored as a hash, different for
 * each application, whose key all instances share: it derives from the pepper. Without
 * one it derives from the store id, which is in the database, so that whoever reads the
 * database can try all IPv4 addresses.
 */
export function createOpeningLimits({
  settings,
  storeId,
  readAddressOf,
}: OpeningLimitsOptions): OpeningLimits {
  const { peppers, trustedProxies, unauthorizedSessionQuota: total } = settings;
  const secret = peppers[0] || storeId;
  const key = Buffer.from(hkdfSync("sha256", secret, storeId, "latchkey: networks", keySize));
  const perNetwork = Math.max(1, Math.floor(total / networkDivisor));
  return (applicationId, peer) => {
    const address = readAddressOf(peer);
    const network = address ? clientNetworkKey(address) : "";
    const hash = createHmac("sha256", key).update(`${applicationId} ${network}`).digest();
    // Many clients have the address of a proxy that does not name them.
    const isClient = address !== undefined && !isInAnyNetwork(trustedProxies, address);
    return {
      networkHash: hash.subarray(0, hashSize),
      quota: { total, ...(isClient && { perNetwork }) },
    };
  };
}
