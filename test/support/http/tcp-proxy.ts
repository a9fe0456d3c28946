import { once } from "node:events";
import type { Socket } from "node:net";
import { type AddressInfo, connect, createServer } from "node:net";

/** Forwards data and closes in both directions. */
export function pipeSockets(client: Socket, upstream: Socket): void {
  forward(client, upstream);
  forward(upstream, client);
}

function forward(from: Socket, to: Socket): void {
  from.setNoDelay();
  from.on("data", (bytes) => to.write(bytes));
  from.on("error", () => {});
  from.on("close", () => to.destroy());
}

/** A TCP proxy with injectable network faults. */
export interface TcpProxy {
  readonly url: string;
  /** The number of open connections. */
  connections(): number;
  /** The times of all connection attempts, by `performance.now()`. */
  attempts(): readonly number[];
  /** The peak number of open connections without a first response. */
  peakPending(): number;
  /** Holds data in both directions and keeps all connections. `restore` releases the data. */
  pause(): void;
  /** Forwards requests and holds responses. `restore` releases them. */
  holdResponses(): void;
  /** Closes all connections, and new ones immediately. */
  cut(): void;
  /** Forwards nothing more on the open connections, without closing them. New ones work. */
  blackhole(): void;
  /** Ends `pause`, `holdResponses` and `cut`. */
  restore(): void;
  /** Closes all connections and forwards new ones to another port. */
  retarget(port: number): void;
  close(): Promise<void>;
}

type Pair = readonly [client: Socket, upstream: Socket];

export async function startProxy(port: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const blackholed = new Set<Pair>();
  let state: "open" | "paused" | "holding" | "cut" = "open";

  function closeAll(): void {
    for (const socket of [...pairs, ...blackholed].flat()) {
      socket.destroy();
    }
    pairs.clear();
    blackholed.clear();
  }

  const attempts: number[] = [];
  const pending = new Set<Socket>();
  let peakPending = 0;

  function trackUntilFirstResponse(client: Socket, upstream: Socket): void {
    pending.add(client);
    peakPending = Math.max(peakPending, pending.size);
    upstream.once("data", () => pending.delete(client));
    client.once("close", () => pending.delete(client));
  }

  const server = createServer((client) => {
    attempts.push(performance.now());
    if (state === "cut") {
      client.destroy();
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    const pair: Pair = [client, upstream];
    pairs.add(pair);
    pipeSockets(client, upstream);
    trackUntilFirstResponse(client, upstream);
    client.once("close", () => pairs.delete(pair));
    if (state === "paused") {
      pauseBoth(pair);
    } else if (state === "holding") {
      pauseUpstream(pair);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => pairs.size,
    attempts: () => attempts,
    peakPending: () => peakPending,

    pause() {
      state = "paused";
      pairs.forEach(pauseBoth);
    },

    holdResponses() {
      state = "holding";
      pairs.forEach(pauseUpstream);
    },

    cut() {
      state = "cut";
      closeAll();
    },

    blackhole() {
      for (const pair of pairs) {
        pauseBoth(pair);
        blackholed.add(pair);
      }
      pairs.clear();
    },

    restore() {
      state = "open";
      for (const socket of [...pairs].flat()) {
        socket.resume();
      }
    },

    retarget(other) {
      port = other;
      closeAll();
    },

    async close() {
      closeAll();
      await new Promise((done) => server.close(done));
    },
  };
}

function pauseUpstream([, upstream]: Pair): void {
  upstream.pause();
}

function pauseBoth(pair: Pair): void {
  for (const socket of pair) {
    socket.pause();
  }
}
