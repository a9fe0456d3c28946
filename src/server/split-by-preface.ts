import type { Server as Http1Server } from "node:http";
import type { Server, Socket } from "node:net";
import { readFirst } from "../read-first.js";
import { type Connected, connectionKey } from "./connection.js";

const preface = "PRI";

/** Hands connections that open with the preface of HTTP/2 to one server and all others to the other. Those that say nothing are ended. */
export function splitByPreface(http1: Http1Server, http2: Server, patience: number): void {
  const serveHttp1 = http1.listeners("connection") as ((socket: Socket) => void)[];
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    if (socket.destroyed) {
      return;
    }
    let isTaken = false;
    const drop = () => socket.destroy();
    const dropLate = readFirst(() => {
      if (!isTaken) {
        drop();
      }
    });
    socket.setTimeout(patience, dropLate);
    let start = Buffer.alloc(0);
    const look = () => {
      start = Buffer.concat([start, socket.read() ?? Buffer.alloc(0)]);
      const seen = start.toString("latin1", 0, preface.length);
      if (seen.length < preface.length && preface.startsWith(seen)) {
        return;
      }
      isTaken = true;
      socket.removeListener("readable", look);
      socket.removeListener("end", drop);
      socket.setTimeout(0, dropLate);
      if (seen === preface) {
        // A server of HTTP/1.1 keeps the connections of clients that hang up; one of HTTP/2 must not.
        socket.allowHalfOpen = false;
        (socket as Connected)[connectionKey]?.flow.begin(() => {
          socket.unshift(start);
          http2.emit("connection", socket);
        });
      } else {
        socket.unshift(start);
        for (const serve of serveHttp1) {
          serve.call(http1, socket);
        }
      }
    };
    socket.on("readable", look);
    socket.on("end", drop);
  });
}
