import { useEffect, useState } from "react";

/** How long nothing is typed before it is asked about, in milliseconds. */
export const settlingTime = 250;

/** A value when it has not changed for a moment, so that not every letter is asked about. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settlingTime);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
