import { readFile, writeFile } from "node:fs/promises";

/** Tells how much more memory a process has had at most since now, in bytes. Only Linux tells: elsewhere it is said that nothing is measured. */
export async function watchMemory(pid: number | undefined) {
  if (process.platform !== "linux") {
    process.stderr.write(`memory is not measured on ${process.platform}\n`);
    return { growth: async () => 0 };
  }
  // From here on the system notes anew how much it was at most.
  await writeFile(`/proc/${pid}/clear_refs`, "5");
  const before = await peakOf(pid);
  return { growth: async () => (await peakOf(pid)) - before };
}

async function peakOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(status) ?? [];
  if (kilobytes === undefined) {
    throw new Error("The system does not tell how much memory the process had.");
  }
  return Number(kilobytes) * 1024;
}
