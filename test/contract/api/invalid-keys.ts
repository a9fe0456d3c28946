import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { type ApiSubject, createKeyFixtures } from "./fixtures.js";

export function describeInvalidKeys(subject: ApiSubject): void {
  const { api, server, expectRefused } = subject;
  const { createTenant } = createKeyFixtures(subject);

  describe("a call without a valid key", () => {
    it("gets the same response for every complete key", async () => {
      const { root, createApplication } = await createTenant();
      const [deleted, replaced, existing] = [
        await createApplication("private"),
        await createApplication("private"),
        await createApplication("private"),
      ];
      await api().deleteApplication(root.key, deleted);
      await api().regenerateApplicationKey(root.key, replaced);
      const expiresAt = timestampFromMs(server().clock.now() + 60_000);
      const request = { name: "Expired", type: "private", permissions: ["token:read"], expiresAt };
      const expired = await api().createApplication(root.key, request);
      server().clock.advance(60_000);
      const disabled = await createApplication("private");
      await api().disableApplication(root.key, disabled);
      const invalidKeys = [
        expired.key,
        disabled.key,
        generateKey("prv", newId(0)),
        generateKey("prv", existing.id),
        generateKey("mgt", existing.id),
        generateKey("ses", existing.id),
        deleted.key,
        replaced.key,
      ];
      const messages = new Set<string>();
      for (const key of invalidKeys) {
        messages.add(
          (await expectRefused(api().getApplicationByKey(key), "unauthenticated")).message,
        );
      }
      expect(messages.size).toBe(1);
      expect([...messages][0]).toMatch(/^The key is not valid: .* in the SVC-API-KEY header\.$/);
    });

    it("is told what the form of the request shows", async () => {
      const { publicKey } = await createTenant();
      const { nonce } = await api().createSession(publicKey);
      const mistyped = `${publicKey.slice(0, -1)}${publicKey.endsWith("0") ? "1" : "0"}`;
      const authorization = { key: "", headers: { authorization: `Bearer ${publicKey}` } };
      for (const [key, expected] of [
        [undefined, "The request has no key."],
        ["", "The request has no key."],
        [authorization, "The key is in Authorization, which this call does not read."],
        ["secret", "This is not a Latchkey key"],
        ["x".repeat(5_000), "This is not a Latchkey key"],
        [mistyped, "its checksum is wrong"],
        [publicKey.slice(0, -1), "its checksum is wrong"],
        [nonce, "the nonce of a session"],
      ] as const) {
        const refusal = await expectRefused(api().getApplicationByKey(key), "unauthenticated");
        expect(refusal.message).toContain(expected);
        expect(refusal.message).not.toContain("lk_pub_");
      }
    });

    it("is refused before its request is validated", async () => {
      await expectRefused(api().createApplication(undefined, { name: "" }), "unauthenticated");
      await expectRefused(api().getApplication(undefined, { id: "42" }), "unauthenticated");
    });
  });
}
