import { once } from "node:events";
import { connect } from "node:net";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { createAuthenticate } from "../../src/auth/authenticate.js";
import { createKeyring } from "../../src/auth/keys.js";
import { writeBase62 } from "../../src/lib/base62.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type Comparison, compare } from "./support/welch.js";

/** Two texts that are measured in turn. */
type Pair = readonly [string, string];

/** Those that differ less than this, in microseconds, cannot be told apart over a network. */
const negligible = 10;

const isAlike = ({ t, difference }: Comparison) => t < 4.5 || difference < negligible;

/** Measures two in turn, so that what slows one down slows the other down as well. */
async function measure(
  [one, other]: Pair,
  count: number,
  take: (text: string) => Promise<number>,
): Promise<Comparison> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < count; round++) {
    // Who goes first changes: the second may find what the first has warmed up.
    const isSwapped = round % 2 === 1;
    const first = await take(isSwapped ? other : one);
    const second = await take(isSwapped ? one : other);
    times[isSwapped ? 1 : 0].push(first);
    times[isSwapped ? 0 : 1].push(second);
  }
  return compare(...times);
}

/** Finds two alike if they are: where a busy machine makes them differ by chance, more is measured. */
async function expectAlike(pair: Pair, count: number, take: (text: string) => Promise<number>) {
  await measure(pair, Math.ceil(count / 4), take);
  let seen: Comparison[] = [];
  for (const more of [1, 2, 4]) {
    const comparison = await measure(pair, count * more, take);
    if (isAlike(comparison)) {
      return;
    }
    seen = [...seen, comparison];
  }
  expect(seen).toEqual("no difference");
}

function withOtherLetter(text: string, at: number): string {
  return text.slice(0, at) + (text[at] === "x" ? "y" : "x") + text.slice(at + 1);
}

/** Where the secret of a key begins, and its check. */
const [secretStart, checkStart] = [29, 62];

/** A key with another letter, whose check is right all the same. */
function withOtherSecret(key: string, at: number): string {
  const start = withOtherLetter(key, at).slice(0, checkStart);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(start));
  const check = Buffer.alloc(key.length - checkStart);
  writeBase62(sum, check, 0, check.length);
  return start + check.toString();
}

jest.setTimeout(240_000);

describe("refuses a key that differs in its first character as fast as one that differs in its last", () => {
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
      () => [withOtherSecret(key, secretStart), withOtherSecret(key, checkStart - 1)],
    ],
    ["of all", () => [withOtherLetter(key, 0), withOtherLetter(key, key.length - 1)]],
  ];

  it.each(pairs)("%s, in the authentication function", async (_what, wrong) => {
    const identify = createAuthenticate(
      server.store,
      createKeyring(["a pepper for the test"]),
      "held",
    );
    await expectAlike(wrong(), 10_000, async (text) => {
      const start = performance.now();
      identify(text);
      return (performance.now() - start) * 1_000;
    });
  });

  it.each(pairs)("%s, in the hash comparison", async (_what, wrong) => {
    const keyring = createKeyring();
    const stored = keyring.hash(key);
    await expectAlike(wrong(), 10_000, async (text) => {
      const start = performance.now();
      keyring.matches(text, stored);
      return (performance.now() - start) * 1_000;
    });
  });

  it.each(pairs)("%s, over a connection", async (_what, wrong) => {
    const socket = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    await expectAlike(wrong(), 500, async (text) => {
      const start = performance.now();
      socket.write(`GET /whoami HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${text}\r\n\r\n`);
      const [answer] = await once(socket, "data");
      const taken = (performance.now() - start) * 1_000;
      expect(String(answer)).toContain("HTTP/1.1 401");
      return taken;
    });
    socket.destroy();
  });
});

it("detects a difference", async () => {
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
  // Where others interrupt it too often, it is not seen the first time.
  for (let round = 1; round < 10 && isAlike(comparison); round++) {
    comparison = await compareOnce();
  }
  expect(isAlike(comparison)).toBe(false);
});
