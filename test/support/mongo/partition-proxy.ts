import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pipeSockets } from "../http/tcp-proxy.js";

/** The way to a server that knows who comes along it, and can be closed for some. */
export interface PartitionProxy {
  readonly port: number;
  /** Lets nothing pass between the server and a caller. */
  block(caller: string, how: PartitionMode): void;
  /** Lets a caller pass again, on new connections. */
  unblock(caller: string): void;
  close(): Promise<void>;
}

/** `silent`: no connection is seen to end, as in a broken network. `refused`: all end, and new ones at once. */
export type PartitionMode = "silent" | "refused";

interface Connection {
  readonly near: Socket;
  readonly far: Socket;
  readonly caller: string;
}

/** Starts a way to a port. `nameOf` tells the caller of a connection by the first bytes that it sends. */
export async function startPartitionProxy(
  port: number,
  nameOf: (firstBytes: Buffer) => string,
): Promise<PartitionProxy> {
  const connections = new Set<Connection>();
  const blocked = new Map<string, (connection: Connection) => void>();

  const callers = new Set<Socket>();

  const server = createServer((near) => {
    callers.add(near);
    near.on("error", () => {});
    near.once("close", () => callers.delete(near));
    near.once("data", (firstBytes) => {
      const far = connect(port, "127.0.0.1");
      const connection: Connection = { near, far, caller: nameOf(firstBytes) };
      connections.add(connection);
      near.once("close", () => connections.delete(connection));
      pipeSockets(near, far);
      const keepOut = blocked.get(connection.caller);
      if (keepOut) {
        keepOut(connection);
      } else {
        far.write(firstBytes);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const of = (caller: string) => [...connections].filter((one) => one.caller === caller);

  return {
    port: (server.address() as AddressInfo).port,

    block(caller, how) {
      const keepOut = how === "silent" ? hold : end;
      blocked.set(caller, keepOut);
      of(caller).forEach(keepOut);
    },

    unblock(caller) {
      if (blocked.delete(caller)) {
        of(caller).forEach(end);
      }
    },

    async close() {
      for (const near of callers) {
        near.destroy();
      }
      await new Promise((done) => server.close(done));
    },
  };
}

function hold({ near, far }: Connection): void {
  near.pause();
  far.pause();
}

function end({ near, far }: Connection): void {
  near.destroy();
  far.destroy();
}
