import { createHmac, hkdfSync } from "node:crypto";
import type { ReadAddressOf } from "../../auth/caller-address.js";
import type { Peer } from "../../call.js";
import type { Settings } from "../../config/settings.js";
import { clientNetworkKey, isInAnyNetwork } from "../../lib/networks.js";
import type { SessionLimit } from "../../store/port/change.js";
import type { ApplicationRecord } from "../../store/port/records.js";

interface OpeningLimitsOptions {
  readonly settings: Pick<Settings, "peppers" | "trustedProxies" | "unauthorizedSessionQuota">;
  readonly storeId: string;
  readonly readAddressOf: ReadAddressOf;
}

/** The limits of the sessions that a client opens, and what is stored about its address. */
type OpeningLimits = (
  application: ApplicationRecord,
  peer: Peer,
) => { readonly networkHash: Uint8Array; readonly limits: readonly SessionLimit[] };

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
  return ({ id: applicationId, sessionEpoch: epoch }, peer) => {
    const address = readAddressOf(peer);
    const network = address ? clientNetworkKey(address) : "";
    const hash = createHmac("sha256", key).update(`${applicationId} ${network}`).digest();
    const networkHash = hash.subarray(0, hashSize);
    const ofApplication = { quota: "unauthorized", applicationId, epoch, limit: total } as const;
    // Many clients have the address of a proxy that does not name them.
    const isClient = address !== undefined && !isInAnyNetwork(trustedProxies, address);
    return {
      networkHash,
      limits: isClient
        ? [{ ...ofApplication, quota: "network", networkHash, limit: perNetwork }, ofApplication]
        : [ofApplication],
    };
  };
}
