import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, containerRule, createKeyFixtures, sessionRule } from "./fixtures.js";

const idFormat = /^[0-9a-f]{16}$/;

export function describeRuleIds(subject: ApiSubject): void {
  const { server, api } = subject;
  const { createTenant } = createKeyFixtures(subject);
  const idsOf = (grants: { readonly rules: readonly { readonly id: string }[] } | undefined) =>
    grants?.rules.map(({ id }) => id);

  describe("the id of a rule", () => {
    it("is the same wherever the rule is shown", async () => {
      const { root } = await createTenant();
      const rules = [{ ...containerRule, container: "/other/" }, containerRule];
      const request = { name: "ruled", type: "private", rules };
      const created = await api().createApplication(root.key, request);
      const ids = idsOf(created);
      expect(ids).toEqual([expect.stringMatching(idFormat), expect.stringMatching(idFormat)]);
      expect(new Set(ids).size).toBe(2);
      expect(idsOf(await api().getApplication(root.key, created))).toEqual(ids);
      expect(idsOf(await api().whoAmI(created.key))).toEqual(ids);
      const { data } = await api().listEvents(root.key, { target: created.id });
      expect(idsOf(data[0]?.after)).toEqual(ids);
      const { decidedBy } = await api().checkAccess(root.key, {
        key: created.key as string,
        permission: containerRule.permissions[0] as string,
        token: { container: containerRule.container },
      });
      expect(decidedBy?.rule).toMatchObject({ index: 1, id: ids?.[1] });
    });

    it("is shown with the rules of sessions and both of their decisions", async () => {
      const { root, publicKey, privateKey } = await createTenant();
      const { nonce, sessionKey } = await api().createSession(publicKey);
      const expiresAt = timestampFromMs(server().clock.now() + 60_000);
      const rules = [sessionRule];
      await api().authorizeSession(privateKey, { nonce, rules, expiresAt });
      const { data } = await api().listSessions(root.key);
      const ids = idsOf(data[0]);
      expect(ids).toEqual([expect.stringMatching(idFormat)]);
      const { bySession } = await api().checkAccess(root.key, {
        key: sessionKey,
        permission: "token:read",
        token: { container: "/pci/" },
      });
      expect(bySession?.decidedBy?.rule).toMatchObject({ index: 0, id: ids?.[0] });
    });

    it("is ignored in requests", async () => {
      const { root } = await createTenant();
      const rules = [{ ...containerRule, id: "mine" }];
      const request = { name: "ruled", type: "private", rules };
      const created = await api().createApplication(root.key, request);
      expect(idsOf(created)).toEqual([expect.stringMatching(idFormat)]);
      const update = { id: created.id, name: "renamed", rules: [{ ...containerRule, id: "x" }] };
      expect(idsOf(await api().updateApplication(root.key, update))).toEqual(idsOf(created));
    });
  });
}
