import { once } from "node:events";
import { connect } from "node:net";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createAuthenticate } from "../../src/auth/authenticate.js";
import { createKeyring } from "../../src/auth/keys.js";
import { writeBase62 } from "../../src/lib/base62.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type Comparison, compare } from "./support/welch.js";

/** Two keys to compare. */
type Pair = readonly [string, string];

/** Differences below this, in microseconds, cannot be measured over a network. */
const negligible = 10;

const isEqual = ({ t, difference }: Comparison) => t < 4.5 || difference < negligible;

/** Measures both alternately, so that interruptions affect them equally. */
async function measure(
  [left, right]: Pair,
  count: number,
  measureOne: (text: string) => Promise<number>,
): Promise<Comparison> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < count; round++) {
    // The order alternates, because the first may warm up caches for the second.
    const isSwapped = round % 2 === 1;
    const first = await measureOne(isSwapped ? right : left);
    const second = await measureOne(isSwapped ? left : right);
    times[isSwapped ? 1 : 0].push(first);
    times[isSwapped ? 0 : 1].push(second);
  }
  return compare(...times);
}

/** Expects equal durations. Repeats with more samples, because a busy machine can cause random differences. */
async function expectEqualDurations(
  pair: Pair,
  count: number,
  measureOne: (text: string) => Promise<number>,
) {
  await measure(pair, Math.ceil(count / 4), measureOne);
  let differences: Comparison[] = [];
  for (const more of [1, 2, 4]) {
    const comparison = await measure(pair, count * more, measureOne);
    if (isEqual(comparison)) {
      return;
    }
    differences = [...differences, comparison];
  }
  expect(differences).toEqual("no difference");
}

function replaceCharacter(text: string, at: number): string {
  return text.slice(0, at) + (text[at] === "x" ? "y" : "x") + text.slice(at + 1);
}

/** The offsets of the secret and the checksum in a key. */
const [secretStart, checksumStart] = [29, 62];

/** Replaces a character of the secret and updates the checksum. */
function replaceSecretCharacter(key: string, at: number): string {
  const start = replaceCharacter(key, at).slice(0, checksumStart);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32(start));
  const checksum = Buffer.alloc(key.length - checksumStart);
  writeBase62(crc, checksum, 0, checksum.length);
  return start + checksum.toString();
}

describe("the refusal of a key", () => {
  let server: TestServer;
  let key: string;

  beforeAll(async () => {
    server = await startServer("lmdb");
    ({ key } = await server.createTenant());
  });

  afterAll(() => server.close());

  const pairs: [what: string, wrong: () => Pair][] = [
    [
      "of its secret",
      () => [
        replaceSecretCharacter(key, secretStart),
        replaceSecretCharacter(key, checksumStart - 1),
      ],
    ],
    ["of the key", () => [replaceCharacter(key, 0), replaceCharacter(key, key.length - 1)]],
  ];

  it.each(pairs)(
    "takes equally long for a wrong first and a wrong last character %s, in the authentication function",
    async (_what, wrong) => {
      const authenticate = createAuthenticate(
        server.store,
        createKeyring(["a pepper for the test"]),
        "held",
      );
      await expectEqualDurations(wrong(), 10_000, async (text) => {
        const start = performance.now();
        authenticate(text);
        return (performance.now() - start) * 1_000;
      });
    },
  );

  it.each(pairs)(
    "takes equally long for a wrong first and a wrong last character %s, in the hash comparison",
    async (_what, wrong) => {
      const keyring = createKeyring();
      const stored = keyring.hash(key);
      await expectEqualDurations(wrong(), 10_000, async (text) => {
        const start = performance.now();
        keyring.matches(text, stored);
        return (performance.now() - start) * 1_000;
      });
    },
  );

  it.each(pairs)(
    "takes equally long for a wrong first and a wrong last character %s, over a connection",
    async (_what, wrong) => {
      const socket = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      await expectEqualDurations(wrong(), 500, async (text) => {
        const start = performance.now();
        socket.write(`GET /whoami HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${text}\r\n\r\n`);
        const [response] = await once(socket, "data");
        const duration = (performance.now() - start) * 1_000;
        expect(String(response)).toContain("HTTP/1.1 401");
        return duration;
      });
      socket.destroy();
    },
  );
});

it("detects a difference in a control experiment", async () => {
  const wait = (microseconds: number) => {
    const start = performance.now();
    while ((performance.now() - start) * 1_000 < microseconds) {}
  };
  const compareOnce = () =>
    measure(["first", "last"], 500, async (text) => {
      const start = performance.now();
      wait(text === "first" ? 20 : 60);
      return (performance.now() - start) * 1_000;
    });
  let comparison = await compareOnce();
  // Frequent interruptions can hide the difference.
  for (let round = 1; round < 10 && isEqual(comparison); round++) {
    comparison = await compareOnce();
  }
  expect(isEqual(comparison)).toBe(false);
});
