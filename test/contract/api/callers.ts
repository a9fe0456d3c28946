import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { keyHoldersOf } from "./key-holders.js";
import type { ApiSubject } from "./subject.js";

/** Who calls without a key that works. */
export function describeCallers(subject: ApiSubject): void {
  const { api, refused } = subject;
  const { createTenant } = keyHoldersOf(subject);

  describe("a call without a valid key", () => {
    it("gets the same response, whatever is wrong with the key", async () => {
      const { root, make, publicKey } = await createTenant();
      const [deleted, replaced, brief] = [
        await make("private"),
        await make("private"),
        await make("private"),
      ];
      await api().deleteApplication(root.key, deleted);
      await api().regenerateApplicationKey(root.key, replaced);
      const { nonce } = await api().createSession(publicKey);
      const bad = [
        undefined,
        "",
        "secret",
        `${publicKey.slice(0, -1)}${publicKey.endsWith("0") ? "1" : "0"}`,
        generateKey("prv", newId(0)),
        generateKey("prv", brief.id),
        generateKey("mgt", brief.id),
        generateKey("ses", brief.id),
        deleted.key,
        replaced.key,
        nonce,
        "x".repeat(5_000),
      ];
      const messages = new Set<string>();
      for (const key of bad) {
        messages.add((await refused(api().getApplicationByKey(key), "unauthenticated")).message);
      }
      expect(messages.size).toBe(1);
    });

    it("is refused before its request is validated", async () => {
      await refused(api().createApplication(undefined, { name: "" }), "unauthenticated");
      await refused(api().getApplication(undefined, { id: "42" }), "unauthenticated");
    });
  });
}
