import { readFileSync } from "node:fs";
import { Agent, request as ask } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { useAttacked } from "../support/attacked.js";
import { frame, frameType } from "../support/http2-frames.js";
import { openRaw, openRawHttp2, type RawConnection } from "../support/raw-connection.js";
import { openRawTls, tlsEnvironment } from "../support/raw-tls.js";
import { until } from "../support/until.js";

const wanted = 10_000;
/** What this process and the service have open beside connections. */
const reserve = 500;
/** How many connections are opened and closed at a time. */
const atOnce = 500;

/** How many connections this process may open, each of which is a file. It has taken all that the system grants. */
function mostConnections(): number {
  if (process.platform !== "linux") {
    return 1_000;
  }
  const limits = readFileSync("/proc/self/limits", "utf8");
  const [, soft] = /Max open files\s+(\d+)/.exec(limits) ?? [];
  return Math.min(wanted, Number(soft) - reserve);
}

/** Opens many connections, a few at a time, each of which begins with these bytes. */
async function openMany(port: number, count: number, start: string | Uint8Array) {
  const connections: RawConnection[] = [];
  while (connections.length < count) {
    for (let some = 0; some < atOnce && connections.length < count; some++) {
      const connection = openRaw(port);
      connection.write(start);
      connections.push(connection);
    }
    await delay(20);
  }
  return connections;
}

const open = (connections: readonly RawConnection[]) =>
  connections.filter(({ socket }) => !socket.destroyed).length;

/** Ends connections as slowly as they were opened: that they end is no part of an attack. */
async function closeAll(connections: readonly RawConnection[]): Promise<void> {
  for (let at = 0; at < connections.length; at += atOnce) {
    for (const { socket } of connections.slice(at, at + atOnce)) {
      socket.destroy();
    }
    await delay(20);
  }
}

describe("thousands of connections from one address", () => {
  const attacked = useAttacked();
  it.each<[what: string, count: number, start: string]>([
    ["that say nothing", mostConnections(), ""],
    ["that begin a request and go no further", 3_000, "GET / HTTP/1.1\r\nhost: a\r\nx-a: "],
    ["that begin as HTTP/2", 3_000, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
  ])("%s leave room for others of that address", async (_what, count, start) => {
    await attacked.during(async () => {
      const connections = await openMany(attacked.port, count, start);
      await delay(1_000);
      await until(async () => open(connections) <= 1_000, 10_000);
      await closeAll(connections);
    });
  });
});

describe("ten thousand connections where so many may be", () => {
  const many = String(2 * wanted);
  const attacked = useAttacked({
    ...{ CONNECTION_LIMIT: many, ADDRESS_CONNECTION_LIMIT: many },
    // So that none has to go while the others come.
    ...{ HEADER_TIMEOUT: "1m", BODY_TIMEOUT: "1m" },
  });

  it("are held, and leave room for others", async () => {
    if (process.platform === "linux") {
      // Let the system grant more: ulimit -Hn 11000.
      expect(mostConnections()).toBe(wanted);
    }
    await attacked.during(async () => {
      const connections = await openMany(attacked.port, mostConnections(), "");
      await delay(1_000);
      expect(open(connections)).toBe(mostConnections());
      await closeAll(connections);
    });
  });
});

describe("connections over the limit of an address, with TLS", () => {
  const attacked = useAttacked({ ADDRESS_CONNECTION_LIMIT: "20", ...tlsEnvironment });

  it("are ended, whether or not they have begun to speak", async () => {
    const connections = [
      ...Array.from({ length: 30 }, () => openRaw(attacked.port)),
      ...Array.from({ length: 30 }, () => openRawTls(attacked.port)),
    ];
    await until(async () => open(connections) <= 20, 5_000);
    await closeAll(connections);
  });
});

describe("connections that wait for ever with calls that need no key", () => {
  const limit = 50;
  const attacked = useAttacked({ ADDRESS_CONNECTION_LIMIT: String(limit) });
  const unfinished =
    "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: a\r\n" +
    "content-type: application/json\r\ncontent-length: 9\r\n\r\n{";

  it("leave room for others of that address, however many there are", async () => {
    await attacked.during(async () => {
      const connections: RawConnection[] = [];
      for (let round = 0; round < 20; round++) {
        connections.push(...(await openMany(attacked.port, limit, unfinished)));
        await delay(50);
      }
      await closeAll(connections);
    });
  });
});

describe("connections over the limit of an address", () => {
  const limit = 20;
  const attacked = useAttacked({ ADDRESS_CONNECTION_LIMIT: String(limit) });

  function statusOver(agent: Agent, key?: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const outgoing = ask({
        ...{ host: "127.0.0.1", port: attacked.port, path: "/applications/key", agent },
        headers: key === undefined ? {} : { "svc-api-key": key },
      });
      outgoing.on("response", (incoming) => {
        incoming.resume();
        incoming.on("end", () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.on("error", reject);
      outgoing.end();
    });
  }

  function keptAgent() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number>();
    agent.on("free", ({ localPort }) => ports.add(localPort));
    return { agent, ports };
  }

  it("cost those their place that came first and have shown no key", async () => {
    const known = keptAgent();
    const stranger = keptAgent();
    expect(await statusOver(known.agent, attacked.firstKey)).toBe(200);
    expect(await statusOver(stranger.agent)).toBe(401);
    const connections = await openMany(attacked.port, 3 * limit, "");
    await until(
      async () => connections.filter(({ socket }) => socket.destroyed).length >= 2 * limit,
      5_000,
    );
    expect(await statusOver(known.agent, attacked.firstKey)).toBe(200);
    expect(known.ports.size).toBe(1);
    expect(await statusOver(stranger.agent)).toBe(401);
    expect(stranger.ports.size).toBe(2);
    await closeAll(connections);
    known.agent.destroy();
    stranger.agent.destroy();
  });

  it("cost none its place that waits for an answer", async () => {
    const { firstKey: key } = attacked;
    const waiting = Array.from({ length: limit }, () => openRaw(attacked.port));
    for (const { write } of waiting) {
      write(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
          "content-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n",
      );
    }
    await until(
      async () => waiting.every(({ received }) => received().includes("100 Cont")),
      5_000,
    );
    const late = openRaw(attacked.port);
    await late.ended;
    for (const { write } of waiting) {
      write("{}");
    }
    await until(
      async () => waiting.every(({ received }) => received().includes("HTTP/1.1 400")),
      5_000,
    );
    await closeAll(waiting);
  });
});

describe("connections from a proxy that is trusted", () => {
  const attacked = useAttacked({
    ...{ ADDRESS_CONNECTION_LIMIT: "5", CONNECTION_LIMIT: "30", TRUSTED_PROXIES: "127.0.0.1" },
  });

  it("have the limit of all connections alone", async () => {
    const connections = await openMany(attacked.port, 40, "");
    await until(async () => open(connections) === 30, 5_000);
    await attacked.during(async () => delay(300));
    await closeAll(connections);
  });
});

describe("a connection of HTTP/2 that makes no call", () => {
  const attacked = useAttacked({ HEADER_TIMEOUT: "1s", IDLE_TIMEOUT: "1h" });

  it("is ended as soon as one of HTTP/1.1, even if it pings now and then", async () => {
    const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
    await attacked.during(async () => {
      const connections = Array.from({ length: 100 }, () => openRawHttp2(attacked.port));
      const pinging = setInterval(() => connections.map(({ write }) => write(ping)), 200);
      const times = await Promise.all(connections.map(({ ended }) => ended));
      clearInterval(pinging);
      expect(Math.max(...times)).toBeLessThan(8_000);
    });
  });
});
