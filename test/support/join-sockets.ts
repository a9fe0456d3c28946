import type { Socket } from "node:net";

/** Passes on what comes, and the end of it, between two sockets. */
export function joinSockets(near: Socket, far: Socket): void {
  passOn(near, far);
  passOn(far, near);
}

function passOn(from: Socket, to: Socket): void {
  from.setNoDelay();
  from.on("data", (bytes) => to.write(bytes));
  from.on("error", () => {});
  from.on("close", () => to.destroy());
}
