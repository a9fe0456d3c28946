import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { chooseConnection } from "../../src/cli/connection.js";
import { readClientEnvironment } from "../../src/cli/environment.js";
import { momentAgo, momentAhead, serviceUrl } from "../../src/cli/options.js";
import { readProfiles, writeProfiles } from "../../src/cli/profile/profiles.js";
import { withFolder } from "../support/process.js";

const local = { url: "http://localhost:8080", key: "local-key" };
const staging = { url: "https://staging.example.com", key: "staging-key", keyHeader: "X-KEY" };
const profiles = {
  current: "local",
  byName: new Map([
    ["local", local],
    ["staging", staging],
  ]),
};
const choose = (
  flags: Parameters<typeof chooseConnection>[0],
  environment: Record<string, string> = {},
) => chooseConnection(flags, readClientEnvironment(environment), profiles);

describe("where a command calls, and with which key", () => {
  it("is what options say, then the environment, then the profile in use", () => {
    expect(choose({})).toMatchObject(local);
    expect(choose({}, { LATCHKEY_PROFILE: "staging" })).toEqual(staging);
    const environment = { LATCHKEY_URL: "http://other:1/", LATCHKEY_KEY: "env-key" };
    expect(choose({}, environment)).toMatchObject({ url: "http://other:1", key: "env-key" });
    expect(choose({ url: "http://third:1" }, environment).url).toBe("http://third:1");
    expect(choose({ keyFile: "file" }, environment).key).toBeUndefined();
    expect(choose({}, { SVC_API_KEY: "header-key" }).key).toBe("header-key");
  });

  it("is all of a profile that an option names, whatever the environment says", () => {
    const environment = { LATCHKEY_URL: "http://other:1", LATCHKEY_KEY: "env-key" };
    expect(choose({ profile: "staging" }, environment)).toEqual(staging);
  });

  it("never is the key of a profile with another address", () => {
    expect(choose({ url: "https://evil.example.com" }).key).toBeUndefined();
    expect(choose({ profile: "staging", url: local.url }).key).toBeUndefined();
    expect(choose({}, { LATCHKEY_URL: "http://other:1" }).key).toBeUndefined();
  });

  it("is refused where there is no such profile, or no such address", () => {
    expect(() => choose({ profile: "constructor" })).toThrow('There is no profile "constructor".');
    expect(() => choose({}, { LATCHKEY_URL: "ftp://x" })).toThrow("LATCHKEY_URL: It must be");
    expect(() => serviceUrl("https://user:secret@host")).toThrow("It must be an address");
  });
});

describe("profiles", () => {
  it("are kept in a file of their owner, in a folder of its own, and written whole", () =>
    withFolder(async (folder) => {
      const path = join(folder, "config", "profiles.json");
      await mkdir(join(folder, "config"), { mode: 0o755 });
      await writeProfiles(profiles, path);
      expect(await readProfiles(path)).toEqual(profiles);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      expect((await stat(join(folder, "config"))).mode & 0o777).toBe(0o700);
      expect(await readdir(join(folder, "config"))).toEqual(["profiles.json"]);
    }));

  it("are not read where others could have read them, or are none", () =>
    withFolder(async (folder) => {
      const path = join(folder, "profiles.json");
      expect((await readProfiles(path)).byName.size).toBe(0);
      await writeProfiles(profiles, path);
      await chmod(path, 0o640);
      await expect(readProfiles(path)).rejects.toThrow("can be read by others (mode 640)");
      await chmod(path, 0o600);
      await writeFile(path, "{}");
      await expect(readProfiles(path)).rejects.toThrow("is not a file of profiles");
      expect(await readFile(path, "utf8")).toBe("{}");
    }));
});

describe("a moment", () => {
  it("is told by a date, or by how far it is", () => {
    const near = (date: Date, distance: number) =>
      Math.abs(date.getTime() - Date.now() - distance) < 60_000;
    expect(momentAhead("2030-01-31T12:00:00+02:00").toISOString()).toBe("2030-01-31T10:00:00.000Z");
    expect(near(momentAhead("30d"), 30 * 86_400_000)).toBe(true);
    expect(near(momentAgo("1h"), -3_600_000)).toBe(true);
    expect(() => momentAhead("tomorrow")).toThrow("must be a moment");
    expect(() => momentAhead("2030-02-31T25:00:00Z")).toThrow("must be a moment");
  });
});
