import { readFile, writeFile } from "node:fs/promises";

/** Measures by how many bytes the peak memory of a process grows from now on. Linux only; elsewhere returns 0. */
export async function watchMemory(pid: number | undefined) {
  if (process.platform !== "linux") {
    process.stderr.write(`Memory is not measured on ${process.platform}.\n`);
    return { growth: async () => 0 };
  }
  // Resets VmHWM, the peak memory.
  await writeFile(`/proc/${pid}/clear_refs`, "5");
  const before = await readPeak(pid);
  return { growth: async () => (await readPeak(pid)) - before };
}

async function readPeak(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(status) ?? [];
  if (kilobytes === undefined) {
    throw new Error("VmHWM is missing in the status of the process.");
  }
  return Number(kilobytes) * 1024;
}
