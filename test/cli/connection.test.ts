import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { resolveConnection } from "../../src/cli/connection.js";
import { readClientEnvironment } from "../../src/cli/environment.js";
import { parseFutureTime, parsePastTime, parseServiceUrl } from "../../src/cli/option-values.js";
import { readProfiles, writeProfiles } from "../../src/cli/profiles-file.js";
import { withTempFolder } from "../support/service/run-latchkey.js";

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
  flags: Parameters<typeof resolveConnection>[0],
  environment: Record<string, string> = {},
) => resolveConnection(flags, readClientEnvironment(environment), profiles);

describe("resolveConnection", () => {
  it("prefers options to the environment, and the environment to the current profile", () => {
    expect(choose({})).toMatchObject(local);
    expect(choose({}, { LATCHKEY_PROFILE: "staging" })).toMatchObject(staging);
    const environment = { LATCHKEY_URL: "http://other:1/", LATCHKEY_KEY: "env-key" };
    expect(choose({}, environment)).toMatchObject({ url: "http://other:1", key: "env-key" });
    expect(choose({ url: "http://third:1" }, environment).url).toBe("http://third:1");
    expect(choose({ keyFile: "file" }, environment).key).toBeUndefined();
  });

  it("ignores the environment with --profile", () => {
    const environment = { LATCHKEY_URL: "http://other:1", LATCHKEY_KEY: "env-key" };
    expect(choose({ profile: "staging" }, environment)).toMatchObject(staging);
  });

  it("never sends the key of a profile to another URL", () => {
    expect(choose({ url: "https://evil.example.com" }).key).toBeUndefined();
    expect(choose({ profile: "staging", url: local.url }).key).toBeUndefined();
    expect(choose({}, { LATCHKEY_URL: "http://other:1" }).key).toBeUndefined();
  });

  it("uses SVC_API_KEY, the variable of programs, only if no profile has a key for the URL", () => {
    const environment = { SVC_API_KEY: "program-key" };
    expect(choose({}, environment)).toMatchObject(local);
    expect(choose({ url: "http://third:1" }, environment).key).toBe("program-key");
    expect(choose({ profile: "staging", url: local.url }, environment).key).toBeUndefined();
  });

  it("names the source of the key", () => {
    const source = (...args: Parameters<typeof choose>) => choose(...args).keySource;
    expect([
      source({ keyFile: "file" }, { LATCHKEY_KEY: "env-key" }),
      source({}, { LATCHKEY_KEY: "env-key" }),
      source({ url: "http://third:1" }, { SVC_API_KEY: "program-key" }),
      source({ profile: "staging" }, { LATCHKEY_KEY: "env-key" }),
      source({}),
      source({ url: "https://evil.example.com" }),
    ]).toEqual([
      "--key-file file",
      "LATCHKEY_KEY",
      "SVC_API_KEY",
      'the profile "staging"',
      'the profile "local"',
      undefined,
    ]);
  });

  it("refuses an unknown profile and an invalid URL", () => {
    expect(() => choose({ profile: "constructor" })).toThrow('No profile is named "constructor".');
    expect(() => choose({}, { LATCHKEY_URL: "ftp://x" })).toThrow("LATCHKEY_URL: It must be");
    expect(() => parseServiceUrl("https://user:secret@host")).toThrow("It must be a URL");
  });
});

describe("profiles", () => {
  it("are stored in a file of mode 0600 in a folder of mode 0700", () =>
    withTempFolder(async (folder) => {
      const path = join(folder, "config", "profiles.json");
      await mkdir(join(folder, "config"), { mode: 0o755 });
      await writeProfiles(profiles, path);
      expect(await readProfiles(path)).toEqual(profiles);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      expect((await stat(join(folder, "config"))).mode & 0o777).toBe(0o700);
      expect(await readdir(join(folder, "config"))).toEqual(["profiles.json"]);
    }));

  it("are refused if other users can read the file or it is invalid", () =>
    withTempFolder(async (folder) => {
      const path = join(folder, "profiles.json");
      expect((await readProfiles(path)).byName.size).toBe(0);
      await writeProfiles(profiles, path);
      await chmod(path, 0o640);
      await expect(readProfiles(path)).rejects.toThrow("readable by other users (mode 640)");
      await chmod(path, 0o600);
      await writeFile(path, "{}");
      await expect(readProfiles(path)).rejects.toThrow("is not a valid profiles file");
      expect(await readFile(path, "utf8")).toBe("{}");
    }));
});

describe("a time option", () => {
  it("accepts an RFC 3339 time or a duration", () => {
    const near = (date: Date, distance: number) =>
      Math.abs(date.getTime() - Date.now() - distance) < 60_000;
    expect(parseFutureTime("2030-01-31T12:00:00+02:00").toISOString()).toBe(
      "2030-01-31T10:00:00.000Z",
    );
    expect(parsePastTime("2026-01-31 12:00:00Z").toISOString()).toBe("2026-01-31T12:00:00.000Z");
    expect(near(parseFutureTime("30d"), 30 * 86_400_000)).toBe(true);
    expect(near(parsePastTime("1h"), -3_600_000)).toBe(true);
    expect(() => parseFutureTime("tomorrow")).toThrow("must be a time");
    expect(() => parseFutureTime("2030-02-31T25:00:00Z")).toThrow("must be a time");
  });
});
