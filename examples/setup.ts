// Shared setup of the guard examples: a guard, and a caller with permissions.
import { setTimeout as delay } from "node:timers/promises";
import { createGuard, createLatchkeyClient } from "latchkey/client";

const url = process.env.LATCHKEY_URL ?? "http://localhost:8080";

/** The guard applies changes within this many milliseconds. */
const maxStaleness = 200;

export async function setUp() {
  const latchkey = createLatchkeyClient({ url, key: process.env.SVC_API_KEY });
  const { applications } = latchkey;

  // Your service checks access with its own key.
  const service = await applications.createApplication({
    name: "Token vault",
    type: "private",
    permissions: ["access:check"],
  });
  const guard = createGuard({ url, key: service.key, maxStaleness });

  // The caller may read tokens in /pci/, masked.
  const caller = await applications.createApplication({
    name: "Invoices",
    type: "private",
    rules: [{ priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] }],
  });

  return {
    guard,
    // The response to its creation always has the key.
    callerKey: caller.key as string,

    async revokeCaller() {
      await applications.deleteApplication({ id: caller.id });
      console.log("The caller is deleted.");
      await delay(maxStaleness);
    },

    async cleanUp() {
      await guard.close();
      await applications.deleteApplication({ id: service.id });
      latchkey.close();
    },
  };
}
