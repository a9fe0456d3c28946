import { describe, expect, it } from "@jest/globals";
import { ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { engines } from "../support/service/server.js";
import { useAttackedStore } from "./support/attacked-store.js";

const attackers = 4;
const updates = 8;

const managing = ["application:create", "application:update", "application:read"];
const tokenPermissions = Array.from({ length: 9 }, (_, index) => `t:p${index}`);

/** Grants just below the limit of 64 KiB. */
function largeGrants(transform: string) {
  return {
    permissions: managing,
    rules: Array.from({ length: 700 }, (_, index) => ({
      priority: (index % 7) + 1,
      container: `/customers/${index}/`,
      transform,
      permissions: tokenPermissions,
    })),
  };
}

describe.each(engines)("updates of large grants on store=%s", (engine) => {
  const { service, runAttack } = useAttackedStore(engine);

  /** Updates applications as large as its own, with concurrent updates of the same ones. */
  async function attack(): Promise<number> {
    const api = createRestApi(service.url);
    const root = await service.createTenant();
    const create = (name: string, grants: object) =>
      api.createApplication(root, { name, type: "private", ...grants });
    const caller = keyOf(await create("caller", largeGrants("mask")));
    const { id } = await create("target", largeGrants("reveal"));
    let accepted = 0;
    await Promise.all(
      Array.from({ length: attackers }, async () => {
        for (let update = 0; update < updates; update++) {
          const grants = largeGrants(update % 3 === 0 ? "redact" : "mask");
          await api.updateApplication(caller, { id, name: "target", ...grants });
          accepted++;
          const revealing = { id, name: "target", ...largeGrants("reveal") };
          await expect(api.updateApplication(caller, revealing)).rejects.toBeInstanceOf(ApiFailure);
        }
      }),
    );
    return accepted;
  }

  // One update took 44 s when its cost was cubic in the number of rules.
  it("delay neither the calls nor the revocations of others", async () => {
    expect(await runAttack(attack)).toBe(attackers * updates);
  });
});
