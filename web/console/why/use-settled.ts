import { useEffect, useState } from "react";

/** A value when it has not changed for a moment, so that not every letter is asked about. */
export function useSettled<T>(value: T, moment = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), moment);
    return () => clearTimeout(timer);
  }, [value, moment]);
  return settled;
}
