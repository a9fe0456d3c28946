import type { ServiceImpl } from "@connectrpc/connect";
import type { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { type Call, unauthenticatedCallOf } from "../../call.js";
import type { Dependencies } from "../../dependencies.js";
import { invalidSignature, Problem } from "../../errors.js";
import { createSemaphore } from "../../lib/concurrency.js";
import { throwIfRefused } from "../../limits/rate-limits.js";
import { createFeedback, isSignedBy, readLeakedTokens } from "./leak-report.js";
import { createRevoke } from "./revoke.js";
import { loadSigningKeys } from "./signing-keys.js";

/** Keys of one report that are revoked at the same time. */
const concurrency = 8;

/** Handlers that revoke leaked keys. Their callers are not authenticated. */
export function createKeyHandlers(
  dependencies: Pick<
    Dependencies,
    "store" | "keyring" | "addressOf" | "rateLimits" | "clock" | "settings" | "log" | "stopping"
  >,
): ServiceImpl<typeof KeyService> {
  const { rateLimits, settings, log, stopping } = dependencies;
  const { secretScanning } = settings;
  const revoke = createRevoke(dependencies);
  const signingKeys =
    secretScanning && loadSigningKeys({ settings: secretScanning, log, signal: stopping });

  /** Counts a call like one with an invalid key. */
  async function countFailure({ peer }: Call): Promise<void> {
    throwIfRefused(await rateLimits.countFailure(peer));
  }

  /** Returns the keys that were valid. If some cannot be revoked, tries the others before it throws. */
  async function revokeAll(keys: ReadonlySet<string>, call: Call): Promise<Set<string>> {
    const found = new Set<string>();
    const withLimit = createSemaphore(concurrency);
    const results = await Promise.allSettled(
      Array.from(keys, (key) =>
        withLimit(async () => {
          if (await revoke(key, call)) {
            found.add(key);
          }
        }),
      ),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed) {
      throw failed.reason;
    }
    return found;
  }

  return {
    async revokeKey({ key }, context) {
      const call = unauthenticatedCallOf(context);
      // Every key counts, so that the limit does not reveal whether it was valid.
      await countFailure(call);
      await revoke(key, call);
      return {};
    },

    async reportLeakedKeys({ data }, context) {
      const call = unauthenticatedCallOf(context);
      if (!signingKeys) {
        throw notConfigured();
      }
      if (!isSignedBy(signingKeys(), call.header, data)) {
        await countFailure(call);
        throw invalidSignature();
      }
      const tokens = readLeakedTokens(data);
      const found = await revokeAll(new Set(tokens.map(({ token }) => token)), call);
      const feedback = JSON.stringify(createFeedback(tokens, found));
      return { contentType: "application/json", data: Buffer.from(feedback) };
    },
  };
}

function notConfigured(): Problem {
  return new Problem(
    "path_not_found",
    "Not found. The operator must set SECRET_SCANNING_KEYS to accept reports of leaked keys.",
  );
}
