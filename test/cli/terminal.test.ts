import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { describeWith } from "../support/can-run.js";
import { startHttp1Proxy } from "../support/http1-proxy.js";
import { latchkeyPath } from "../support/process.js";
import { useService } from "../support/service-for-file.js";
import { useStops } from "../support/stops.js";
import { isFullSuite } from "../support/suite.js";
import { until } from "../support/until.js";
import { useCli } from "./run.js";

const service = useService();
const cli = useCli();
const stopAfterTest = useStops();

/** The one of util-linux gives a command a terminal. Others do not know this option. */
const script = ["script", "--version"] as const;

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
      await until(async () => text.includes(question));
      child.stdin.write(typed);
    },
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}

/** Makes an application, and answers what it is. */
async function create(name: string): Promise<{ readonly id: string }> {
  const response = await fetch(`${service.url}/applications`, {
    method: "POST",
    headers: { "SVC-API-KEY": service.firstKey, "Content-Type": "application/json" },
    body: JSON.stringify({ name, type: "private", permissions: ["a:b"] }),
  });
  expect(response.status).toBe(201);
  return response.json() as Promise<{ id: string }>;
}

const asAdmin = () => ({ LATCHKEY_URL: service.url, LATCHKEY_KEY: service.firstKey });

describeWith(script, "on a terminal", () => {
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
    await create("Doomed");
    const mistaken = inTerminal(["apps", "rm", "Doomed"], asAdmin());
    await mistaken.answer('Type "Doomed" to go on: ', "doomed\r");
    expect(await mistaken.ended()).toBe(1);
    expect(mistaken.shown()).toContain("latchkey: Nothing was done.");
    const meant = inTerminal(["apps", "rm", "Doomed"], asAdmin());
    await meant.answer('Type "Doomed" to go on: ', "Doomed\r");
    expect(await meant.ended()).toBe(0);
    expect(meant.shown()).toContain("is deleted.");
  });

  it("a key is not replaced where its application was changed while that was asked", async () => {
    const { id } = await create("Changed meanwhile");
    const rotate = inTerminal(["apps", "rotate", id], asAdmin());
    const question = 'Type "yes" to go on: ';
    await until(async () => rotate.shown().includes(question));
    const headers = { "SVC-API-KEY": service.firstKey };
    await fetch(`${service.url}/applications/${id}/disable`, { method: "POST", headers });
    await rotate.answer(question, "yes\r");
    expect(await rotate.ended()).toBe(6);
  });

  // Each starts processes, which takes long.
  if (isFullSuite) {
    it("a name is typed as it is, also with spaces at its ends, and shown with what is unseen in it", async () => {
      const name = " Soft\u00adhyphen ";
      const shown = " Soft\\u{ad}hyphen ";
      const { id } = await create(name);
      const environment = asAdmin();
      const disabled = await cli.run(["apps", "disable", id], { environment });
      expect(disabled.stdout).toBe(`"${shown}" is disabled.\n`);
      const emptied = await cli.run(["sessions", "rm", "--all", "--application", id, "--yes"], {
        environment,
      });
      expect(emptied.stdout).toBe(`All sessions of "${shown}" have ended.\n`);
      const follow = inTerminal(
        ["events", "--follow", "--json", "--since", "1h", "--target", id],
        environment,
      );
      await until(async () => follow.shown().includes("application.sessions_revoked"));
      const rm = inTerminal(["apps", "rm", id], environment);
      await rm.answer(`Type "${shown}" to go on: `, `${name}\r`);
      expect(await rm.ended()).toBe(0);
      expect(rm.shown()).toContain(`The private application "${shown}" (${id}) will be deleted`);
      expect(rm.shown()).toContain(`"${shown}" (${id}) is deleted.`);
      await until(async () => follow.shown().includes("application.deleted"));
      expect(follow.shown()).toContain(" Soft\\u00adhyphen ");
      expect(follow.shown()).not.toContain(name);
    });

    it("a long list shows how much of it is read, which is gone at the end", async () => {
      await Promise.all(Array.from({ length: 101 }, (_, at) => create(`Many ${at}`)));
      let calls = 0;
      let goOn = () => {};
      const proxy = await startHttp1Proxy(service.port, () =>
        ++calls === 2 ? new Promise((resolve) => (goOn = resolve)) : undefined,
      );
      stopAfterTest(() => void proxy.close());
      const list = inTerminal(["apps", "ls", "--name", "Many", "--all"], {
        ...asAdmin(),
        LATCHKEY_URL: proxy.url,
      });
      await until(async () => list.shown().includes("\r100 read\u001b[K"));
      goOn();
      expect(await list.ended()).toBe(0);
      expect(list.shown()).toContain("100 read\u001b[K\r\u001b[K\u001b[2mID");
      expect(list.shown().match(/Many \d+/g)).toHaveLength(101);
    });

    it("tables have colours and no line that is too long, and JSON is indented", async () => {
      const [coloured, plain, json] = [
        inTerminal(["apps", "ls", "--name", "Bootstrap"], asAdmin()),
        inTerminal(["apps", "ls", "--name", "Bootstrap"], { ...asAdmin(), NO_COLOR: "1" }),
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
  }
});
