import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Api } from "../../support/api/api.js";
import { tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";

interface Change<Answer = unknown> {
  readonly what: string;
  run(api: Api, key: string, target: Target): Promise<Answer>;
}

interface Target {
  readonly id: string;
  /** An earlier key of it that still works. */
  readonly keyId: string;
  /** The version at which alone it is to be changed. */
  readonly ifMatch?: string;
}

const answered: readonly Change<Application>[] = [
  {
    what: "updating an application",
    run: (api, key, target) =>
      api.updateApplication(key, { ...target, name: "renamed", ...tokenRead }),
  },
  {
    what: "regenerating its key",
    run: (api, key, target) => api.regenerateApplicationKey(key, target),
  },
  { what: "disabling it", run: (api, key, target) => api.disableApplication(key, target) },
  { what: "enabling it", run: (api, key, target) => api.enableApplication(key, target) },
];

const changes: readonly Change[] = [
  ...answered,
  {
    what: "ending one of its keys",
    run: (api, key, target) => api.deleteApplicationKey(key, target),
  },
  { what: "deleting it", run: (api, key, target) => api.deleteApplication(key, target) },
];

/** Changing only what one has seen. */
export function describeLocking({ server, api, refused }: ApiSubject): void {
  /** An application with two keys that work, and ways to look at it. */
  async function made() {
    const { key } = await server().createTenant();
    const request = { name: "one", type: "private", permissions: ["application:read"] };
    const created = await api().createApplication(key, request);
    const { id } = created;
    const gracePeriod = durationFromMs(3_600_000);
    const { version, key: present = "" } = await api().regenerateApplicationKey(key, {
      id,
      gracePeriod,
    });
    const keys = async () => (await api().listApplicationKeys(key, { id })).data;
    const keyId = (await keys())[1]?.id ?? "";
    const look = async () => [await api().getApplication(key, { id }), await keys()] as const;
    return { key, present, created, version, target: { id, keyId }, look };
  }

  describe("the version of an application", () => {
    it.each(answered)("changes after $what", async ({ run }) => {
      const { key, version, target } = await made();
      const changed = await run(api(), key, target);
      expect(changed.version).not.toBe(version);
      expect((await api().getApplication(key, target)).version).toBe(changed.version);
    });

    it("changes after one of its keys is revoked", async () => {
      const { key, version, target } = await made();
      await api().deleteApplicationKey(key, target);
      expect((await api().getApplication(key, target)).version).not.toBe(version);
    });

    it("never repeats", async () => {
      const { key, created, version, target } = await made();
      const versions = new Set([created.version, version]);
      for (let time = 0; time < 3; time++) {
        versions.add((await api().disableApplication(key, target)).version);
        versions.add((await api().enableApplication(key, target)).version);
      }
      expect(versions.size).toBe(8);
    });

    it("stays the same while the application is read, listed and used", async () => {
      const { key, present, version, target } = await made();
      for (let time = 0; time < 3; time++) {
        server().clock.advance(120_000);
        expect((await api().getApplication(key, target)).version).toBe(version);
        expect((await api().getApplicationByKey(present)).version).toBe(version);
        const { data } = await api().listApplications(key, { id: [target.id] });
        expect(data.map((one) => one.version)).toEqual([version]);
      }
    });
  });

  describe.each(changes)("$what with an expected version", ({ run }) => {
    it("succeeds if the version is current", async () => {
      const { key, version, target, look } = await made();
      await run(api(), key, { ...target, ifMatch: version });
      const now = await look().then(
        ([application]) => application.version,
        () => "gone",
      );
      expect(now).not.toBe(version);
    });

    it("is refused if the version has changed, and changes nothing", async () => {
      const { key, created, version, target, look } = await made();
      const before = await look();
      const stale = run(api(), key, { ...target, ifMatch: created.version });
      expect((await refused(stale, "version_mismatch")).message).toContain(
        `current version is ${version}`,
      );
      expect(await look()).toEqual(before);
    });

    it("is refused for an unknown version", async () => {
      const { key, target, look } = await made();
      const before = await look();
      for (const ifMatch of ["no-version", "0", "1e1", `${2 ** 53}`]) {
        await refused(run(api(), key, { ...target, ifMatch }), "version_mismatch");
      }
      expect(await look()).toEqual(before);
    });

    it("returns 404 for other tenants, whatever the version", async () => {
      const { version, target, look } = await made();
      const before = await look();
      const other = await server().createTenant();
      for (const ifMatch of [version, "no-version"]) {
        await refused(run(api(), other.key, { ...target, ifMatch }), "application_not_found");
      }
      expect(await look()).toEqual(before);
    });
  });

  describe("the expected version", () => {
    it("may have the quotes of an ETag", async () => {
      const { key, created, version, target } = await made();
      const stale = { ...target, ifMatch: `"${created.version}"` };
      await refused(api().disableApplication(key, stale), "version_mismatch");
      await api().disableApplication(key, { ...target, ifMatch: `"${version}"` });
    });

    it("may be sent as a header", async () => {
      const { key, created, version, target } = await made();
      const as = (version: string) => ({ key, headers: { "if-match": `"${version}"` } });
      await refused(api().disableApplication(as(created.version), target), "version_mismatch");
      await refused(api().deleteApplication(as(created.version), target), "version_mismatch");
      await api().disableApplication(as(version), target);
    });

    it.each(['W/"17"', "17", '"1", "2"'])("is refused as the header %s", async (tag) => {
      const { key, target, look } = await made();
      const before = await look();
      const as = { key, headers: { "if-match": tag } };
      const { errors } = await refused(api().deleteApplication(as, target), "invalid_request");
      expect(Object.keys(errors)).toEqual(["If-Match"]);
      expect(await look()).toEqual(before);
    });
  });

  it("of ten concurrent updates with one version, one succeeds and nine are refused", async () => {
    const { key, version, target } = await made();
    const names = Array.from({ length: 10 }, (_, at) => `name ${at}`);
    const outcomes = await Promise.allSettled(
      names.map((name) =>
        api().updateApplication(key, { id: target.id, name, ...tokenRead, ifMatch: version }),
      ),
    );
    const done = outcomes.flatMap((it) => (it.status === "fulfilled" ? it.value : []));
    const untold = outcomes.flatMap((it) => (it.status === "rejected" ? it.reason.reason : []));
    expect(untold).toEqual(Array(9).fill("version_mismatch"));
    expect(done).toHaveLength(1);
    const { name, version: now } = await api().getApplication(key, target);
    expect(done[0]).toMatchObject({ name, version: now });
  });
}
