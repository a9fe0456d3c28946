import { once } from "node:events";
import type { Socket } from "node:net";
import { type AddressInfo, connect, createServer } from "node:net";

/** Passes on what comes, and the end of it, between two sockets. */
export function pipeSockets(near: Socket, far: Socket): void {
  passOn(near, far);
  passOn(far, near);
}

function passOn(from: Socket, to: Socket): void {
  from.setNoDelay();
  from.on("data", (bytes) => to.write(bytes));
  from.on("error", () => {});
  from.on("close", () => to.destroy());
}

/** A way to a server that a test can block. */
export interface TcpProxy {
  readonly url: string;
  /** How many connections there are. */
  connections(): number;
  /** When each was made so far, as `performance.now()` tells time. */
  attempts(): readonly number[];
  /** The most connections at any one time that were open and had not been answered yet. */
  peakUnanswered(): number;
  /** Lets nothing pass in either direction, and keeps all connections. What was held back passes on `restore`. */
  pause(): void;
  /** Lets requests pass, and holds back all that is answered. It passes on `restore`. */
  holdResponses(): void;
  /** Ends all connections, and each new one at once. */
  cut(): void;
  /** Lets nothing pass on the connections that there are, ever again; new ones work. */
  blackhole(): void;
  /** Works again. */
  restore(): void;
  /** Leads new connections to another port, and ends those that there are. */
  retarget(port: number): void;
  close(): Promise<void>;
}

/** The two ends of a connection. */
type Pair = readonly [near: Socket, far: Socket];

export async function startProxy(port: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const blackholed = new Set<Pair>();
  let state: "open" | "paused" | "holding" | "cut" = "open";

  function endAll(): void {
    for (const socket of [...pairs, ...blackholed].flat()) {
      socket.destroy();
    }
    pairs.clear();
    blackholed.clear();
  }

  const attempts: number[] = [];
  const unanswered = new Set<Socket>();
  let peakUnanswered = 0;

  function noteUntilAnswered(near: Socket, far: Socket): void {
    unanswered.add(near);
    peakUnanswered = Math.max(peakUnanswered, unanswered.size);
    far.once("data", () => unanswered.delete(near));
    near.once("close", () => unanswered.delete(near));
  }

  const server = createServer((near) => {
    attempts.push(performance.now());
    if (state === "cut") {
      near.destroy();
      return;
    }
    const far = connect(port, "127.0.0.1");
    const pair: Pair = [near, far];
    pairs.add(pair);
    pipeSockets(near, far);
    noteUntilAnswered(near, far);
    near.once("close", () => pairs.delete(pair));
    if (state === "paused") {
      stop(pair);
    } else if (state === "holding") {
      holdBack(pair);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => pairs.size,
    attempts: () => attempts,
    peakUnanswered: () => peakUnanswered,

    pause() {
      state = "paused";
      pairs.forEach(stop);
    },

    holdResponses() {
      state = "holding";
      pairs.forEach(holdBack);
    },

    cut() {
      state = "cut";
      endAll();
    },

    blackhole() {
      for (const pair of pairs) {
        stop(pair);
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
      endAll();
    },

    async close() {
      endAll();
      await new Promise((done) => server.close(done));
    },
  };
}

function holdBack([, far]: Pair): void {
  far.pause();
}

function stop(pair: Pair): void {
  for (const socket of pair) {
    socket.pause();
  }
}
