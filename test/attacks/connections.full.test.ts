import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { openRaw, openRawHttp2, type RawConnection } from "../support/http/raw-connection.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";
import { openRawTls, tlsEnvironment } from "./support/raw-tls.js";

const wantedConnections = 10_000;
/** Open files of this process and the service other than connections. */
const reservedFiles = 500;
/** Connections opened or closed at a time: fewer than the listen backlog. */
const batchSize = 400;

/** The connections that the open file limit allows. Node has raised the soft limit to the hard limit. */
function readMaxConnections(): number {
  if (process.platform !== "linux") {
    return 1_000;
  }
  const limits = readFileSync("/proc/self/limits", "utf8");
  const [, soft] = /Max open files\s+(\d+|unlimited)/.exec(limits) ?? [];
  const maxConnections =
    soft === "unlimited"
      ? wantedConnections
      : Math.min(wantedConnections, Number(soft) - reservedFiles);
  if (maxConnections < wantedConnections) {
    process.stderr.write(
      `Testing only ${maxConnections} connections. Raise the limit with ulimit -Hn.\n`,
    );
  }
  return maxConnections;
}

/** Opens connections in batches and sends the same bytes on each. */
async function openMany(
  port: number,
  count: number,
  start: string | Uint8Array,
  localAddress?: string,
) {
  const connections: RawConnection[] = [];
  while (connections.length < count) {
    const batch = Array.from({ length: Math.min(batchSize, count - connections.length) }, () => {
      const connection = openRaw(port, localAddress);
      connection.write(start);
      return connection;
    });
    connections.push(...batch);
    // A refused connection may close without a connect event.
    await Promise.all(
      batch.map(({ socket, ended }) => Promise.race([waitUntilConnected(socket), ended])),
    );
  }
  return connections;
}

function waitUntilConnected(socket: RawConnection["socket"]): Promise<void> {
  return new Promise((resolve) => void socket.once("connect", () => resolve()));
}

const countOpen = (connections: readonly RawConnection[]) =>
  connections.filter(({ socket }) => !socket.destroyed).length;

/** Closes connections in batches, because closing is not part of the attack. */
async function closeAll(connections: readonly RawConnection[]): Promise<void> {
  for (let at = 0; at < connections.length; at += batchSize) {
    for (const { socket } of connections.slice(at, at + batchSize)) {
      socket.destroy();
    }
    await delay(20);
  }
}

describe("thousands of connections from one address", () => {
  const service = useAttackedService(noTimeouts);

  it.each<[what: string, count: number, start: string]>([
    ["that send nothing", readMaxConnections(), ""],
    ["that send an incomplete request", 3_000, "GET / HTTP/1.1\r\nhost: a\r\nx-a: "],
    [
      "that send only the HTTP/2 preface",
      3_000,
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ],
  ])(
    "leave capacity for clients of other addresses: connections %s",
    async (_what, count, start) => {
      await service.runAttack(async (client) => {
        const connections = await openMany(service.port, count, start, "127.0.0.2");
        await until(async () => countOpen(connections) <= 1_000);
        await client.waitForResponses(10);
        await closeAll(connections);
      });
    },
  );
});

describe("ten thousand connections within the limit", () => {
  const limit = String(2 * wantedConnections);
  const service = useAttackedService({
    ...noTimeouts,
    CONNECTION_LIMIT: limit,
    ADDRESS_CONNECTION_LIMIT: limit,
  });

  it("stay open and leave capacity for other clients", async () => {
    const maxConnections = readMaxConnections();
    await service.runAttack(async (client) => {
      const connections = await openMany(service.port, maxConnections, "");
      await until(
        async () => (await scrape(service)).sum("latchkey_connections_open") >= maxConnections,
      );
      await client.waitForResponses(10);
      expect(countOpen(connections)).toBe(maxConnections);
      await closeAll(connections);
    });
  });
});

describe("TLS connections over the limit per address", () => {
  const service = useAttackedService({
    ...noTimeouts,
    ...tlsEnvironment,
    ADDRESS_CONNECTION_LIMIT: "20",
  });

  it("are closed, whether or not they have started the handshake", async () => {
    const connections = [
      ...Array.from({ length: 30 }, () => openRaw(service.port)),
      ...Array.from({ length: 30 }, () => openRawTls(service.port)),
    ];
    await until(async () => countOpen(connections) <= 20);
    await closeAll(connections);
  });
});

describe("connections over the limit per address", () => {
  const limit = 20;
  const service = useAttackedService({ ...noTimeouts, ADDRESS_CONNECTION_LIMIT: String(limit) });

  it("are refused until another one closes, and never end a call", async () => {
    const waiting = Array.from({ length: limit }, () => openRaw(service.port));
    for (const { write } of waiting) {
      write(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${service.firstKey}\r\n` +
          "content-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n",
      );
    }
    await until(async () => waiting.every(({ received }) => received().includes("100 Cont")));
    const refused = openRaw(service.port);
    await refused.ended;
    for (const { write } of waiting) {
      write("{}");
    }
    await until(async () => waiting.every(({ received }) => received().includes("HTTP/1.1 400")));
    waiting[0]?.socket.destroy();
    await until(async () => {
      const accepted = openRaw(service.port);
      accepted.write("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
      await accepted.ended;
      return accepted.received().includes("HTTP/1.1 200");
    });
    await closeAll(waiting);
  });
});

describe("connections from a trusted proxy", () => {
  const service = useAttackedService({
    ADDRESS_CONNECTION_LIMIT: "5",
    CONNECTION_LIMIT: "30",
    TRUSTED_PROXIES: "127.0.0.1",
    ...noTimeouts,
  });

  it("count only against the total limit", async () => {
    const connections = await openMany(service.port, 40, "");
    await until(async () => countOpen(connections) === 30);
    await closeAll(connections);
  });
});

describe("an HTTP/2 connection without calls", () => {
  const service = useAttackedService({ HEADER_TIMEOUT: "1s", IDLE_TIMEOUT: "1h" });

  it("is closed after its timeout and not before", async () => {
    await service.runAttack(async () => {
      const connections = Array.from({ length: 100 }, () => openRawHttp2(service.port));
      const times = await Promise.all(connections.map(({ ended }) => ended));
      expect(Math.min(...times)).toBeGreaterThan(1_000);
    });
  });
});
