import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { latchkeyPath } from "../support/process.js";
import { useService } from "../support/service-for-file.js";
import { useStops } from "../support/stops.js";
import { until } from "../support/until.js";
import { useCli } from "./run.js";

const service = useService();
const cli = useCli();
const stopAfterTest = useStops();

/** The one of util-linux gives a command a terminal. */
const hasScript = /util-linux/.test(String(spawnSync("script", ["--version"]).stdout));
const onTerminal = hasScript ? describe : describe.skip;

interface Terminal {
  readonly child: ChildProcess;
  /** All that it has shown. */
  shown(): string;
  /** Waits until it shows this, and types an answer. */
  answer(question: string, typed: string): Promise<void>;
  ended(): Promise<number | null>;
}

/** Runs a command in a terminal of 80 columns. */
function inTerminal(args: readonly string[], environment: Record<string, string> = {}): Terminal {
  const words = [process.execPath, join(process.cwd(), latchkeyPath), ...args];
  const command = `stty cols 80; ${words.map((word) => `'${word}'`).join(" ")}`;
  const child = spawn("script", ["-qfec", command, "/dev/null"], {
    env: {
      PATH: process.env.PATH,
      TERM: "xterm",
      SHELL: "/bin/sh",
      ...cli.environment(environment),
    },
  });
  stopAfterTest(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (part) => {
    text += part;
  });
  const closed = once(child, "close");
  return {
    child,
    shown: () => text,
    async answer(question, typed) {
      await until(async () => text.includes(question), 20_000);
      child.stdin.write(typed);
    },
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}

const asAdmin = () => ({ LATCHKEY_URL: service.url, LATCHKEY_KEY: service.firstKey });

onTerminal("on a terminal", () => {
  it("a key is asked for, and not shown while it is typed", async () => {
    const terminal = inTerminal(["whoami"], { LATCHKEY_URL: service.url });
    await terminal.answer(
      `The key for ${service.url}: `,
      `wrong\u0015${service.firstKey}x\u007f\r`,
    );
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown()).toContain("Bootstrap");
    expect(terminal.shown()).not.toContain(service.firstKey);
  });

  it("a prompt ends by Ctrl-C with 130", async () => {
    const terminal = inTerminal(["whoami"], { LATCHKEY_URL: service.url });
    await terminal.answer("The key for", "\u0003");
    expect(await terminal.ended()).toBe(130);
  });

  it("what cannot be taken back is asked about, and done for the right answer alone", async () => {
    const create = ["apps", "create", "Doomed", "--type", "private", "--permission", "a:b"];
    expect((await cli.run(create, { environment: asAdmin() })).code).toBe(0);
    const mistaken = inTerminal(["apps", "rm", "Doomed"], asAdmin());
    await mistaken.answer('Type "Doomed" to go on: ', "doomed\r");
    expect(await mistaken.ended()).toBe(1);
    expect(mistaken.shown()).toContain("latchkey: Nothing was done.");
    const meant = inTerminal(["apps", "rm", "Doomed"], asAdmin());
    await meant.answer('Type "Doomed" to go on: ', "Doomed\r");
    expect(await meant.ended()).toBe(0);
    expect(meant.shown()).toContain("is deleted.");
  });

  it("tables have colours and no line that is too long, and JSON is indented", async () => {
    const [coloured, plain, json] = [
      inTerminal(["apps", "ls"], asAdmin()),
      inTerminal(["apps", "ls"], { ...asAdmin(), NO_COLOR: "1" }),
      inTerminal(["whoami", "--json"], asAdmin()),
    ];
    await Promise.all([coloured, plain, json].map((terminal) => terminal.ended()));
    expect(coloured.shown()).toContain("\u001b[32menabled\u001b[39m");
    expect(plain.shown()).not.toContain("\u001b[");
    const lines = plain.shown().split("\r\n");
    expect(lines[1]).toContain("Bootstrap");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(json.shown()).toContain('{\r\n  "kind": "application",\r\n');
  });

  it("long work shows a bar, which is gone at the end", async () => {
    const terminal = inTerminal(["bench", "--seconds", "1", "--connections", "1"], asAdmin());
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown()).toMatch(/\r\[#* *\] [\d,]+ calls/);
    expect(terminal.shown()).toContain("\r\u001b[K\u001b[2mservice");
  });
});
