import { createHmac, hkdfSync } from "node:crypto";
import type { Peer } from "../../auth/caller.js";
import type { ReadAddressOf } from "../../auth/caller-address.js";
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

/** One network may open this part of the unauthorized sessions. */
export const networkShare = 10;

const keySize = 32;
/** Few of the networks with sessions share a hash, which tells nobody the address. */
const hashSize = 8;

/**
 * One network has at most a tenth of the unauthorized sessions of an application, so
 * that it cannot lock out the others. The address is stored as a short hash under a
 * secret that all instances share, different for each application.
 */
export function createOpeningLimits({
  settings,
  storeId,
  readAddressOf,
}: OpeningLimitsOptions): OpeningLimits {
  const { peppers, trustedProxies, unauthorizedSessionQuota: total } = settings;
  const secret = peppers[0] || storeId;
  const key = Buffer.from(hkdfSync("sha256", secret, storeId, "latchkey: networks", keySize));
  const perNetwork = Math.max(1, Math.floor(total / networkShare));
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
