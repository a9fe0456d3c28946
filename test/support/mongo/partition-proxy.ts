import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pipeSockets } from "../http/tcp-proxy.js";

/** A TCP proxy that identifies its clients and can block some of them. */
export interface PartitionProxy {
  readonly port: number;
  /** Blocks all traffic between the server and a caller. */
  block(caller: string, how: PartitionMode): void;
  /** Unblocks a caller. It must reconnect. */
  unblock(caller: string): void;
  close(): Promise<void>;
}

/** `silent`: connections stay open without traffic. `refused`: all connections are closed, new ones immediately. */
export type PartitionMode = "silent" | "refused";

interface Connection {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly caller: string;
}

/** `identify` returns the caller of a connection from the first bytes that it sends. */
export async function startPartitionProxy(
  port: number,
  identify: (firstBytes: Buffer) => string,
): Promise<PartitionProxy> {
  const connections = new Set<Connection>();
  const blocked = new Map<string, (connection: Connection) => void>();

  const clients = new Set<Socket>();

  const server = createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    client.once("close", () => clients.delete(client));
    client.once("data", (firstBytes) => {
      const upstream = connect(port, "127.0.0.1");
      const connection: Connection = { client, upstream, caller: identify(firstBytes) };
      connections.add(connection);
      client.once("close", () => connections.delete(connection));
      pipeSockets(client, upstream);
      const applyBlock = blocked.get(connection.caller);
      if (applyBlock) {
        applyBlock(connection);
      } else {
        upstream.write(firstBytes);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const connectionsOf = (caller: string) =>
    [...connections].filter((connection) => connection.caller === caller);

  return {
    port: (server.address() as AddressInfo).port,

    block(caller, how) {
      const applyBlock = how === "silent" ? hold : disconnect;
      blocked.set(caller, applyBlock);
      connectionsOf(caller).forEach(applyBlock);
    },

    unblock(caller) {
      if (blocked.delete(caller)) {
        connectionsOf(caller).forEach(disconnect);
      }
    },

    async close() {
      for (const client of clients) {
        client.destroy();
      }
      await new Promise((done) => server.close(done));
    },
  };
}

function hold({ client, upstream }: Connection): void {
  client.pause();
  upstream.pause();
}

function disconnect({ client, upstream }: Connection): void {
  client.destroy();
  upstream.destroy();
}
