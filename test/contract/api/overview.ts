import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { OverviewSchema } from "../../../gen/latchkey/v1/overview_service_pb.js";
import type { Key } from "../../support/api/api.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, seedTenant } from "./fixtures.js";

const day = 24 * 3_600_000;

export function describeOverview({ server, api, expectRefused }: ApiSubject): void {
  const getOverview = async (key: Key) => expectValid(OverviewSchema, await api().getOverview(key));

  describe("the overview", () => {
    it("counts applications by type, status, expiry and use, and open sessions", async () => {
      const { root, backend, shop, createApplication, openSession } = await seedTenant(
        server(),
        api(),
      );
      await seedTenant(server(), api());
      expect(await getOverview(root.key)).toMatchObject({
        applications: {
          total: 3,
          private: 1,
          public: 1,
          management: 1,
          enabled: 3,
          disabled: 0,
          expiring: 0,
          unused: 0,
        },
        sessions: { open: 0 },
      });
      const expireAfter = (days: number) => ({
        permissions: ["token:read"],
        expiresAt: timestampFromMs(server().clock.now() + days * day),
      });
      await createApplication("private", expireAfter(29));
      await createApplication("private", expireAfter(31));
      await createApplication("private", expireAfter(1));
      await openSession();
      await openSession({ permissions: ["token:read"] });
      await api().disableApplication(root.key, backend);
      const { applications, sessions } = await getOverview(root.key);
      expect(applications).toMatchObject({
        total: 6,
        private: 4,
        public: 1,
        management: 1,
        enabled: 5,
        disabled: 1,
        expiring: 2,
        unused: 0,
      });
      expect(sessions?.open).toBe(2);
      expect(sessions?.capped).toBeUndefined();
      await api().revokeAllSessions(root.key, shop);
      server().clock.advance(2 * day);
      const later = await getOverview(root.key);
      expect(later).toMatchObject({
        applications: { total: 5, expiring: 2 },
        sessions: { open: 0 },
      });
      server().clock.advance(89 * day);
      expect((await getOverview(root.key)).applications).toMatchObject({ total: 3, unused: 3 });
    });

    it("needs application:read, and session:read for sessions", async () => {
      const { root, createApplication } = await seedTenant(server(), api());
      const reader = await createApplication("private", { permissions: ["application:read"] });
      const other = await createApplication("private", { permissions: ["session:read"] });
      expect((await getOverview(reader.key)).sessions).toBeUndefined();
      expect((await getOverview(root.key)).sessions).toBeDefined();
      await expectRefused(api().getOverview(other.key), "permission_denied");
    });
  });
}
