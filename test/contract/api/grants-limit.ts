import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, containerRule, seedTenant, sessionRule, tokenRead } from "./fixtures.js";

const limit = 65_536;

/** Rules of this number of bytes in total, with the tag and length of each. */
function rulesOf<Rule extends object>(rule: Rule, bytes: number, sizeOf: (rule: Rule) => number) {
  // The length of a rule, and that of its description, need two bytes, because they are over 127.
  const tagAndLength = 3;
  const count = 150;
  return Array.from({ length: count }, (_, index) => {
    const length = Math.floor(bytes / count) + (index < bytes % count ? 1 : 0);
    const description = "d".repeat(length - tagAndLength - sizeOf(rule) - tagAndLength);
    return { ...rule, description };
  });
}

/** Tags, lengths and values as protobuf encodes them. */
const sizeOfText = (text: string) => 2 + text.length;
const containerRuleSize = ({ container, transform, permissions }: typeof containerRule) =>
  2 + [container, transform, ...permissions].reduce((sum, text) => sum + sizeOfText(text), 0);
const sessionRuleSize = ({ conditions, transform, permissions }: typeof sessionRule) =>
  containerRuleSize({ priority: 1, container: "", transform, permissions }) -
  2 +
  conditions.reduce(
    (sum, each) => sum + 2 + Object.values(each).reduce((all, text) => all + sizeOfText(text), 0),
    0,
  );

/** The grants of one application or session have a maximum size. */
export function describeGrantsLimit({ server, api, expectRefused }: ApiSubject): void {
  describe("grants", () => {
    const tooLarge = { rules: rulesOf(containerRule, limit + 1, containerRuleSize) };
    const largest = { rules: rulesOf(containerRule, limit, containerRuleSize) };

    async function expectTooLarge(call: Promise<unknown>) {
      const { message, errors } = await expectRefused(call, "invalid_request");
      expect(message).toContain(`at most ${limit} bytes`);
      expect(message).toContain(`${limit + 1} bytes`);
      expect(Object.keys(errors)).toEqual(["rules"]);
    }

    it("may have 64 KiB in an application, and are refused with their size beyond", async () => {
      const { root, createApplication } = await seedTenant(server(), api());
      const create = { name: "created", type: "private", permissions: [] };
      await expectTooLarge(api().createApplication(root.key, { ...create, ...tooLarge }));
      const { id } = await createApplication("private", largest);
      const update = { id, name: "updated", permissions: [] };
      await expectTooLarge(api().updateApplication(root.key, { ...update, ...tooLarge }));
      const { rules } = await api().updateApplication(root.key, { ...update, ...largest });
      expect(rules).toHaveLength(largest.rules.length);
    });

    it("are refused if they are too large together with those that an update keeps", async () => {
      const { root, createApplication } = await seedTenant(server(), api());
      const { id } = await createApplication("private", largest);
      const update = (...paths: string[]) =>
        api().updateApplication(root.key, {
          id,
          name: "updated",
          permissions: ["a:b"],
          rules: largest.rules,
          updateMask: create(FieldMaskSchema, { paths }),
        });
      const added = limit + 2 + "a:b".length;
      for (const paths of [["permissions"], ["permissions", "rules"]]) {
        const { message } = await expectRefused(update(...paths), "invalid_request");
        expect(message).toContain(`${added} bytes`);
      }
      expect(await update("name")).toMatchObject({ name: "updated", permissions: [] });
    });

    it("may have 64 KiB in a session, whose nonce stays valid if they are larger", async () => {
      const { backend, shop } = await seedTenant(server(), api());
      const { nonce } = await api().createSession(shop.key);
      const authorize = (bytes: number, others: object = {}) =>
        api().authorizeSession(backend.key, {
          nonce,
          permissions: [],
          rules: rulesOf({ ...sessionRule, ...tokenRead }, bytes, sessionRuleSize),
          ...others,
        });
      await expectTooLarge(authorize(limit + 1));
      const past = { expiresAt: timestampFromMs(server().clock.now() - 1) };
      const { facts } = await expectRefused(authorize(limit + 1, past), "invalid_request");
      expect(facts.violations.map(({ field, code }) => [field, code])).toEqual([
        ["rules", "grants.max_bytes"],
        ["expires_at", "timestamp.gt_now"],
      ]);
      await authorize(limit);
    });
  });
}
