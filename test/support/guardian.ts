import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";

/**
 * Sees to it that a process dies with this one, however that ends: a shell
 * waits at a pipe, which the system closes when this process is gone. Of a
 * process that leads a group, the whole group.
 */
export function dieWithUs(child: ChildProcess, { group = false } = {}): void {
  const target = group ? `-${child.pid}` : child.pid;
  const guardian = spawn("sh", ["-c", `read -r _; kill -9 ${target}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  guardian.unref();
  (guardian.stdin as Socket).unref();
  // Its number may go to another process then.
  child.once("exit", () => guardian.kill("SIGKILL"));
}
