import { existsSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { itIf } from "../support/jest/suite.js";
import { runLatchkey, withTempFolder } from "../support/service/run-latchkey.js";
import { useService } from "../support/service/service-process.js";
import { useCli } from "./run-cli.js";

const service = useService();
const cli = useCli();

const environment = () =>
  cli.environment({ LATCHKEY_URL: service.url, LATCHKEY_KEY: service.firstKey });

/** Runs a command whose stdout or stderr has no reader. */
async function runClosed(
  stream: "stdout" | "stderr",
  args: readonly string[],
  variables: Readonly<Record<string, string>> = environment(),
) {
  const { child, ended, output } = runLatchkey(args, variables);
  child[stream]?.destroy();
  return { code: await ended(), ...output };
}

async function runOnFullDisk(args: readonly string[]) {
  const prefix = ["sh", "-c", 'exec "$@" > /dev/full', "sh"];
  const { ended, output } = runLatchkey(args, environment(), { prefix });
  return { code: await ended(), ...output };
}

const create = ["apps", "create", "Lost", "--type", "private", "--permission", "a:b"];
const lostKey =
  /\nThe new key of "Lost" is lost\. Create another: latchkey apps rotate [0-9a-f-]{36}\n$/;

describe("a command without a reader of stdout", () => {
  it.each([["--help"], ["help apps"], ["serve --help"], ["completion bash"], ["apps ls"]])(
    "ends quietly: latchkey %s",
    async (line) => {
      expect(await runClosed("stdout", line.split(" "))).toEqual({
        code: 0,
        stdout: "",
        stderr: "",
      });
    },
  );

  it("fails if it prints a new key, and describes how to replace it", async () => {
    for (const option of ["--key-only", "--json"]) {
      const { code, stderr } = await runClosed("stdout", [...create, option]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^latchkey: Cannot write to stdout: its reader closed it\./);
      expect(stderr).toMatch(lostKey);
    }
  });

  it("fails if it is an export or the first key", () =>
    withTempFolder(async (DATA_DIR) => {
      const first = await runClosed("stdout", ["bootstrap"], { DATA_DIR });
      expect(first.code).toBe(1);
      expect(first.stderr).toMatch(/Create another: latchkey bootstrap --tenant [0-9a-f-]{36}\n$/);
      expect(await runClosed("stdout", ["export"], { DATA_DIR })).toMatchObject({
        code: 1,
        stderr:
          "latchkey: Cannot write to stdout: its reader closed it.\nThe export is not complete.\n",
      });
    }));
});

describe("a command without a reader of stderr", () => {
  it("keeps its exit code", async () => {
    expect((await runClosed("stderr", ["apps", "lst"])).code).toBe(2);
  });
});

describe("a command on a full disk", () => {
  itIf(existsSync("/dev/full"), "fails with one line", "no /dev/full", async () => {
    expect(await runOnFullDisk(["--help"])).toEqual({
      code: 1,
      stdout: "",
      stderr: "latchkey: Cannot write to stdout: no space left on device.\n",
    });
    const created = await runOnFullDisk([...create, "--key-only"]);
    expect(created).toMatchObject({ code: 1, stderr: expect.stringMatching(lostKey) });
  });
});
