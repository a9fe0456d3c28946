import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { type ApiSubject, createKeyFixtures } from "./fixtures.js";

export function describeInvalidKeys(subject: ApiSubject): void {
  const { api, expectRefused } = subject;
  const { createTenant } = createKeyFixtures(subject);

  describe("a call without a valid key", () => {
    it("gets the same response for every kind of invalid key", async () => {
      const { root, createApplication, publicKey } = await createTenant();
      const [deleted, replaced, existing] = [
        await createApplication("private"),
        await createApplication("private"),
        await createApplication("private"),
      ];
      await api().deleteApplication(root.key, deleted);
      await api().regenerateApplicationKey(root.key, replaced);
      const { nonce } = await api().createSession(publicKey);
      const invalidKeys = [
        undefined,
        "",
        "secret",
        `${publicKey.slice(0, -1)}${publicKey.endsWith("0") ? "1" : "0"}`,
        generateKey("prv", newId(0)),
        generateKey("prv", existing.id),
        generateKey("mgt", existing.id),
        generateKey("ses", existing.id),
        deleted.key,
        replaced.key,
        nonce,
        "x".repeat(5_000),
      ];
      const messages = new Set<string>();
      for (const key of invalidKeys) {
        messages.add(
          (await expectRefused(api().getApplicationByKey(key), "unauthenticated")).message,
        );
      }
      expect(messages.size).toBe(1);
    });

    it("is refused before its request is validated", async () => {
      await expectRefused(api().createApplication(undefined, { name: "" }), "unauthenticated");
      await expectRefused(api().getApplication(undefined, { id: "42" }), "unauthenticated");
    });
  });
}
