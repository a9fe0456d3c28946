import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Api } from "../../support/api/api.js";
import { type ApiSubject, tokenRead } from "./fixtures.js";

interface Change<Response = unknown> {
  readonly name: string;
  run(api: Api, key: string, target: Target): Promise<Response>;
}

interface Target {
  readonly id: string;
  /** An earlier key that is still valid. */
  readonly keyId: string;
  /** The version that the application must have. */
  readonly ifMatch?: string;
}

const changesWithResponse: readonly Change<Application>[] = [
  {
    name: "updating an application",
    run: (api, key, target) =>
      api.updateApplication(key, { ...target, name: "renamed", ...tokenRead }),
  },
  {
    name: "regenerating its key",
    run: (api, key, target) => api.regenerateApplicationKey(key, target),
  },
  { name: "disabling it", run: (api, key, target) => api.disableApplication(key, target) },
  { name: "enabling it", run: (api, key, target) => api.enableApplication(key, target) },
];

const changes: readonly Change[] = [
  ...changesWithResponse,
  {
    name: "revoking one of its keys",
    run: (api, key, target) => api.deleteApplicationKey(key, target),
  },
  { name: "deleting it", run: (api, key, target) => api.deleteApplication(key, target) },
];

export function describeOptimisticLocking({ server, api, expectRefused }: ApiSubject): void {
  /** Creates an application with two valid keys. */
  async function createTarget() {
    const { key } = await server().createTenant();
    const request = { name: "one", type: "private", permissions: ["application:read"] };
    const created = await api().createApplication(key, request);
    const { id } = created;
    const gracePeriod = durationFromMs(3_600_000);
    const { version, key: currentKey = "" } = await api().regenerateApplicationKey(key, {
      id,
      gracePeriod,
    });
    const listKeys = async () => (await api().listApplicationKeys(key, { id })).data;
    const keyId = (await listKeys())[1]?.id ?? "";
    const readState = async () =>
      [await api().getApplication(key, { id }), await listKeys()] as const;
    return { key, currentKey, created, version, target: { id, keyId }, readState };
  }

  describe("the version of an application", () => {
    it.each(changesWithResponse)("changes after $name", async ({ run }) => {
      const { key, version, target } = await createTarget();
      const changed = await run(api(), key, target);
      expect(changed.version).not.toBe(version);
      expect((await api().getApplication(key, target)).version).toBe(changed.version);
    });

    it("changes after one of its keys is revoked", async () => {
      const { key, version, target } = await createTarget();
      await api().deleteApplicationKey(key, target);
      expect((await api().getApplication(key, target)).version).not.toBe(version);
    });

    it("never repeats", async () => {
      const { key, created, version, target } = await createTarget();
      const versions = new Set([created.version, version]);
      for (let i = 0; i < 3; i++) {
        versions.add((await api().disableApplication(key, target)).version);
        versions.add((await api().enableApplication(key, target)).version);
      }
      expect(versions.size).toBe(8);
    });

    it("stays the same while the application is read, listed and used", async () => {
      const { key, currentKey, version, target } = await createTarget();
      for (let i = 0; i < 3; i++) {
        server().clock.advance(120_000);
        expect((await api().getApplication(key, target)).version).toBe(version);
        expect((await api().getApplicationByKey(currentKey)).version).toBe(version);
        const { data } = await api().listApplications(key, { id: [target.id] });
        expect(data.map(({ version }) => version)).toEqual([version]);
      }
    });
  });

  describe.each(changes)("$name with an expected version", ({ run }) => {
    it("succeeds if the version is current", async () => {
      const { key, version, target, readState } = await createTarget();
      await run(api(), key, { ...target, ifMatch: version });
      const now = await readState().then(
        ([application]) => application.version,
        () => "deleted",
      );
      expect(now).not.toBe(version);
    });

    it("is refused if the version has changed, and changes nothing", async () => {
      const { key, created, version, target, readState } = await createTarget();
      const before = await readState();
      const stale = run(api(), key, { ...target, ifMatch: created.version });
      const { message, facts } = await expectRefused(stale, "version_mismatch");
      expect(message).toContain(`current version is ${version}`);
      expect(facts.currentVersion).toBe(version);
      expect(await readState()).toEqual(before);
    });

    it("is refused for an unknown version", async () => {
      const { key, target, readState } = await createTarget();
      const before = await readState();
      for (const ifMatch of ["no-version", "0", "1e1", `${2 ** 53}`]) {
        await expectRefused(run(api(), key, { ...target, ifMatch }), "version_mismatch");
      }
      expect(await readState()).toEqual(before);
    });

    it("returns 404 for other tenants, whatever the version", async () => {
      const { version, target, readState } = await createTarget();
      const before = await readState();
      const other = await server().createTenant();
      for (const ifMatch of [version, "no-version"]) {
        await expectRefused(run(api(), other.key, { ...target, ifMatch }), "application_not_found");
      }
      expect(await readState()).toEqual(before);
    });
  });

  describe("the expected version", () => {
    it("may have the quotes of an ETag", async () => {
      const { key, created, version, target } = await createTarget();
      const stale = { ...target, ifMatch: `"${created.version}"` };
      await expectRefused(api().disableApplication(key, stale), "version_mismatch");
      await api().disableApplication(key, { ...target, ifMatch: `"${version}"` });
    });

    it("may be sent as a header", async () => {
      const { key, created, version, target } = await createTarget();
      const withVersion = (version: string) => ({ key, headers: { "if-match": `"${version}"` } });
      await expectRefused(
        api().disableApplication(withVersion(created.version), target),
        "version_mismatch",
      );
      await expectRefused(
        api().deleteApplication(withVersion(created.version), target),
        "version_mismatch",
      );
      await api().disableApplication(withVersion(version), target);
    });

    it.each(['W/"17"', "17", '"1", "2"'])("is refused as the header %s", async (tag) => {
      const { key, target, readState } = await createTarget();
      const before = await readState();
      const credentials = { key, headers: { "if-match": tag } };
      const { errors } = await expectRefused(
        api().deleteApplication(credentials, target),
        "invalid_request",
      );
      expect(Object.keys(errors)).toEqual(["If-Match"]);
      expect(await readState()).toEqual(before);
    });
  });

  it("accepts one of ten concurrent updates with the same version", async () => {
    const { key, version, target } = await createTarget();
    const names = Array.from({ length: 10 }, (_, index) => `name ${index}`);
    const results = await Promise.allSettled(
      names.map((name) =>
        api().updateApplication(key, { id: target.id, name, ...tokenRead, ifMatch: version }),
      ),
    );
    const updated = results.flatMap((result) =>
      result.status === "fulfilled" ? result.value : [],
    );
    const reasons = results.flatMap((result) =>
      result.status === "rejected" ? result.reason.reason : [],
    );
    expect(reasons).toEqual(Array(9).fill("version_mismatch"));
    expect(updated).toHaveLength(1);
    const { name, version: now } = await api().getApplication(key, target);
    expect(updated[0]).toMatchObject({ name, version: now });
  });
}
