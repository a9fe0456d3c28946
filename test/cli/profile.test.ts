import { stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { CommandError } from "../../src/cli/errors.js";
import { writeProfiles } from "../../src/cli/profiles-file.js";
import { useService } from "../support/service/service-process.js";
import { useCli } from "./run-cli.js";

const service = useService();
const cli = useCli();

describe("a profile", () => {
  it("is saved after its key was verified, used and deleted", async () => {
    const add = ["profile", "add", "local", "--url", service.url];
    const wrong = await cli.run(add, { input: "lk_mgt_wrong" });
    expect(wrong.code).toBe(4);
    const added = await cli.run(add, { input: `${service.firstKey}\n` });
    expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("Bootstrap") });
    expect(added.stdout + added.stderr).not.toContain(service.firstKey);
    expect((await stat(cli.path("latchkey/profiles.json"))).mode & 0o777).toBe(0o600);
    const list = await cli.runInProcess(["profile", "ls"]);
    const shortened = `lk_mgt_…${service.firstKey.slice(25, 29)}`;
    expect(list.stdout).toContain(`*  local  ${service.url}  ${shortened}`);
    expect(list.stdout).not.toContain(service.firstKey);
    expect(await cli.run(["whoami"])).toMatchObject({ code: 0, stdout: added.stdout });
    const whoami = (key: string) => cli.runInProcess(["whoami"], { SVC_API_KEY: key });
    expect((await whoami("another")).stderr).toBe(
      'Using the key of the profile "local", not SVC_API_KEY.\n',
    );
    expect((await whoami(service.firstKey)).stderr).toBe("");
    expect((await cli.runInProcess(["profile", "rm", "local"])).code).toBe(2);
    expect((await cli.runInProcess(["profile", "rm", "local", "--yes"])).code).toBe(0);
    expect((await cli.runInProcess(["profile", "use", "local"])).code).toBe(5);
  });

  it("explains why its folder cannot be created", async () => {
    const path = join(process.cwd(), "package.json/latchkey/profiles.json");
    await expect(writeProfiles({ byName: new Map() }, path)).rejects.toThrow(
      new CommandError(`Cannot write ${path}: not a directory`),
    );
  });
});
