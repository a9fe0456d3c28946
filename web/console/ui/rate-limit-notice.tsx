import { useSyncExternalStore } from "react";
import { Button } from "./buttons.js";
import { formatCountdown } from "./duration.js";
import { useNow } from "./time.js";
import { endWaiting, onWaitingChange, readWaitEnd } from "./waiting-calls.js";

/** Shown while calls wait because the service refused them with 429. It is announced once, not each second. */
export function RateLimitNotice() {
  const end = useSyncExternalStore(onWaitingChange, readWaitEnd);
  return (
    <section className="rate-limit-notice" aria-label="Rate limit" data-shown={end !== undefined}>
      <span role="status" className="visually-hidden">
        {end !== undefined && "Too many calls. The console tries again by itself."}
      </span>
      {end !== undefined && <Countdown end={end} />}
    </section>
  );
}

function Countdown({ end }: { readonly end: number }) {
  const seconds = Math.max(0, Math.ceil((end - useNow()) / 1_000));
  return (
    <>
      <span>
        Too many calls. Trying again in <span role="timer">{formatCountdown(seconds)}</span>.
      </span>
      <span className="actions">
        <Button size="small" onClick={() => endWaiting("repeated")}>
          Try now
        </Button>
        <Button size="small" onClick={() => endWaiting("canceled")}>
          Stop retrying
        </Button>
      </span>
    </>
  );
}
