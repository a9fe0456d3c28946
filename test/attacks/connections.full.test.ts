import { readFileSync } from "node:fs";
import { Agent, request as ask } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { frame, frameType } from "../support/http/http2-frames.js";
import { openRaw, openRawHttp2, type RawConnection } from "../support/http/raw-connection.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";
import { openRawTls, tlsEnvironment } from "./support/raw-tls.js";

const wanted = 10_000;
/** What this process and the service have open beside connections. */
const reserve = 500;
/** How many connections are opened and closed at a time: fewer than may wait to be accepted. */
const atOnce = 400;

/** How many connections this process may open, each of which is a file. Node has taken all that the system grants. */
function mostConnections(): number {
  if (process.platform !== "linux") {
    return 1_000;
  }
  const limits = readFileSync("/proc/self/limits", "utf8");
  const [, soft] = /Max open files\s+(\d+|unlimited)/.exec(limits) ?? [];
  const most = soft === "unlimited" ? wanted : Math.min(wanted, Number(soft) - reserve);
  if (most < wanted) {
    process.stderr.write(`only ${most} connections: let the system grant more by ulimit -Hn\n`);
  }
  return most;
}

/** Opens many connections, some at a time, each of which begins with these bytes. */
async function openMany(port: number, count: number, start: string | Uint8Array) {
  const connections: RawConnection[] = [];
  while (connections.length < count) {
    const some = Array.from({ length: Math.min(atOnce, count - connections.length) }, () => {
      const connection = openRaw(port);
      connection.write(start);
      return connection;
    });
    connections.push(...some);
    // One that is refused at once may end before it tells that it has connected.
    await Promise.all(some.map(({ socket, ended }) => Promise.race([connected(socket), ended])));
  }
  return connections;
}

function connected(socket: RawConnection["socket"]): Promise<void> {
  return new Promise((resolve) => void socket.once("connect", () => resolve()));
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
  const attacked = useAttackedService(noTimeouts);

  it.each<[what: string, count: number, start: string]>([
    ["that say nothing", mostConnections(), ""],
    ["that begin a request and go no further", 3_000, "GET / HTTP/1.1\r\nhost: a\r\nx-a: "],
    ["that begin as HTTP/2", 3_000, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"],
  ])("%s leave room for others of that address", async (_what, count, start) => {
    await attacked.during(async (others) => {
      const connections = await openMany(attacked.port, count, start);
      await until(async () => open(connections) <= 1_000);
      await others.waitForResponses(10);
      await closeAll(connections);
    });
  });
});

describe("ten thousand connections within the limit", () => {
  const many = String(2 * wanted);
  const attacked = useAttackedService({
    ...noTimeouts,
    ...{ CONNECTION_LIMIT: many, ADDRESS_CONNECTION_LIMIT: many },
  });

  it("are kept open and leave capacity for others", async () => {
    const most = mostConnections();
    await attacked.during(async (others) => {
      const connections = await openMany(attacked.port, most, "");
      await until(async () => (await scrape(attacked)).sum("latchkey_connections_open") >= most);
      await others.waitForResponses(10);
      expect(open(connections)).toBe(most);
      await closeAll(connections);
    });
  });
});

describe("TLS connections over the limit per address", () => {
  const attacked = useAttackedService({
    ...{ ...noTimeouts, ...tlsEnvironment, ADDRESS_CONNECTION_LIMIT: "20" },
  });

  it("are closed, whether or not they have started the handshake", async () => {
    const connections = [
      ...Array.from({ length: 30 }, () => openRaw(attacked.port)),
      ...Array.from({ length: 30 }, () => openRawTls(attacked.port)),
    ];
    await until(async () => open(connections) <= 20);
    await closeAll(connections);
  });
});

describe("connections that stay open with unauthenticated calls", () => {
  const limit = 50;
  const attacked = useAttackedService({ ...noTimeouts, ADDRESS_CONNECTION_LIMIT: String(limit) });
  const unfinished =
    "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: a\r\n" +
    "content-type: application/json\r\ncontent-length: 9\r\n\r\n{";

  it("leave capacity for others of the same address", async () => {
    await attacked.during(async (others) => {
      const connections: RawConnection[] = [];
      for (let round = 0; round < 50; round++) {
        connections.push(...(await openMany(attacked.port, limit / 2 - 5, unfinished)));
        await others.waitForResponses(1);
      }
      await closeAll(connections);
    });
  });

  it("make room for a new client that sends its request slowly", async () => {
    const connections = await openMany(attacked.port, limit, unfinished);
    const newClient = openRaw(attacked.port);
    await until(async () => open([...connections, newClient]) <= limit);
    expect(newClient.socket.destroyed).toBe(false);
    newClient.write(
      `GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${attacked.firstKey}\r\n\r\n`,
    );
    await until(async () => newClient.received().includes("200 OK"));
    newClient.socket.destroy();
    await closeAll(connections);
  });
});

describe("connections over the limit per address", () => {
  const limit = 20;
  const attacked = useAttackedService({ ...noTimeouts, ADDRESS_CONNECTION_LIMIT: String(limit) });

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

  it("close the oldest unauthenticated connections", async () => {
    const known = keptAgent();
    const stranger = keptAgent();
    expect(await statusOver(known.agent, attacked.firstKey)).toBe(200);
    expect(await statusOver(stranger.agent)).toBe(401);
    const connections = await openMany(attacked.port, 3 * limit, "");
    await until(
      async () => connections.filter(({ socket }) => socket.destroyed).length >= 2 * limit,
    );
    expect(await statusOver(known.agent, attacked.firstKey)).toBe(200);
    expect(known.ports.size).toBe(1);
    expect(await statusOver(stranger.agent)).toBe(401);
    expect(stranger.ports.size).toBe(2);
    await closeAll(connections);
    known.agent.destroy();
    stranger.agent.destroy();
  });

  it("never close a connection that waits for a response", async () => {
    const { firstKey: key } = attacked;
    const waiting = Array.from({ length: limit }, () => openRaw(attacked.port));
    for (const { write } of waiting) {
      write(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
          "content-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n",
      );
    }
    await until(async () => waiting.every(({ received }) => received().includes("100 Cont")));
    const late = openRaw(attacked.port);
    await late.ended;
    for (const { write } of waiting) {
      write("{}");
    }
    await until(async () => waiting.every(({ received }) => received().includes("HTTP/1.1 400")));
    await closeAll(waiting);
  });
});

describe("connections from a trusted proxy", () => {
  const attacked = useAttackedService({
    ...{ ADDRESS_CONNECTION_LIMIT: "5", CONNECTION_LIMIT: "30", TRUSTED_PROXIES: "127.0.0.1" },
    ...noTimeouts,
  });

  it("count only against the total limit", async () => {
    const connections = await openMany(attacked.port, 40, "");
    await until(async () => open(connections) === 30);
    await attacked.during((others) => others.waitForResponses(10));
    await closeAll(connections);
  });
});

describe("an HTTP/2 connection without calls", () => {
  const attacked = useAttackedService({ HEADER_TIMEOUT: "1s", IDLE_TIMEOUT: "1h" });

  it("is closed after its timeout and not before, even if it sends pings", async () => {
    const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
    await attacked.during(async () => {
      const connections = Array.from({ length: 100 }, () => openRawHttp2(attacked.port));
      const pinging = setInterval(() => connections.map(({ write }) => write(ping)), 200);
      const times = await Promise.all(connections.map(({ ended }) => ended));
      clearInterval(pinging);
      expect(Math.min(...times)).toBeGreaterThan(1_000);
    });
  });
});
