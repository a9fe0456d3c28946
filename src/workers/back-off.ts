const shortest = 100;
const longest = 10_000;
/** One that ran for so long was all right, whatever has ended it. */
const soundLifetime = 30_000;

/** Milliseconds to wait before a worker is replaced: longer each time, where they die one after another. */
export function backOff(lifetime: number, previous = 0): number {
  const isSound = lifetime >= soundLifetime;
  return isSound ? shortest : Math.min(Math.max(previous * 2, shortest), longest);
}
