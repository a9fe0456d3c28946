import { day, hour, minute } from "./time-units.js";

const second = { name: "second", size: 1_000 };
const units = [
  { name: "day", size: day },
  { name: "hour", size: hour },
  { name: "minute", size: minute },
  second,
];

/** Formats milliseconds in the largest unit that divides them. */
export function formatDuration(ms: number): string {
  const { name, size } = units.find(({ size }) => ms % size === 0) ?? second;
  const count = ms / size;
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
