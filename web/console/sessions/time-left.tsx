import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useNow } from "../ui/use-now.js";

/** Seconds that are left, by when it is time to hurry. */
const isShort = 30;
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** How long it is until a moment, running down each second. */
export function TimeLeft({ until }: { readonly until: Timestamp | undefined }) {
  const now = useNow();
  if (!until) {
    return null;
  }
  const date = timestampDate(until);
  const seconds = Math.ceil((date.getTime() - now) / 1_000);
  return (
    <time
      className="time-left"
      dateTime={date.toISOString()}
      title={date.toLocaleString()}
      data-short={seconds <= isShort}
    >
      {seconds > 0 ? duration(seconds) : "ended"}
    </time>
  );
}

/** `2:59`, `1:02:59`, or whole days where it is long. */
function duration(seconds: number): string {
  if (seconds >= 2 * day) {
    return `${Math.floor(seconds / day)} days`;
  }
  const hours = Math.floor(seconds / hour);
  const minutes = Math.floor((seconds % hour) / minute);
  const rest = String(seconds % minute).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
