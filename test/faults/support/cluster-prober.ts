import { type ClusterLedger, type Held, type HeldSession, numberIn } from "./cluster-ledger.js";
import { type Door, type Tally, unavailable } from "./tally.js";

/** Compares the responses of an endpoint with the acknowledged writes, and reports wrong ones. */
export interface Prober {
  endedKey(door: Door, key: string): Promise<void>;
  application(door: Door, application: Held): Promise<void>;
  session(door: Door, session: HeldSession): Promise<void>;
  readonly lies: readonly string[];
}

/** Outcomes that are neither right nor wrong during a fault. */
const untold: readonly string[] = [...unavailable, "lost"];

/** Creates a prober. `excused` outcomes are accepted in addition to the right ones. */
export function createProber(
  tally: Pick<Tally, "call">,
  root: string,
  excused: readonly string[] = untold,
): Prober {
  const lies: string[] = [];

  /** Records a response that is neither right nor excused. */
  function judge({ instance }: Door, what: string, end: string, ...right: string[]): void {
    if (![...right, ...excused].includes(end)) {
      lies.push(`${instance} answered ${end} to ${what}`);
    }
  }

  async function liveKey(door: Door, application: Held): Promise<void> {
    const { key, keyChanges } = application;
    if (key !== undefined) {
      const { end } = await tally.call(door, "live key", (api) => api.whoAmI(key));
      if (application.keyChanges === keyChanges) {
        judge(door, "a key that works", end, "done");
      }
    }
  }

  return {
    lies,

    async endedKey(door, key) {
      const { end } = await tally.call(door, "ended key", (api) => api.whoAmI(key));
      judge(door, "a key that has ended", end, "unauthenticated");
    },

    async application(door, application) {
      const { id, named, isDeleted } = application;
      const read = await tally.call(door, "read", (api) => api.getApplication(root, { id }));
      const { end, value } = read;
      if (isDeleted) {
        judge(door, "a read of what was deleted", end, "application_not_found");
        return;
      }
      judge(
        door,
        "a read",
        end,
        "done",
        ...(application.isDeleting ? ["application_not_found"] : []),
      );
      const number = value && numberIn(value.name);
      if (number !== undefined && (number < named || number > application.sent)) {
        lies.push(`${door.instance} answered name ${number} after ${named} was acknowledged`);
      }
      await liveKey(door, application);
    },

    async session(door, { id, key, isAuthorized }) {
      const read = await tally.call(door, "session", (api) => api.getSession(root, { id }));
      judge(door, "a read of a session", read.end, "done");
      const asked = await tally.call(door, "session key", (api) => api.whoAmI(key));
      judge(door, "the key of a session", asked.end, "done");
      if (
        isAuthorized &&
        (read.value?.state === "unauthorized" || asked.value?.authorized === false)
      ) {
        lies.push(`${door.instance} has undone an authorization`);
      }
    },
  };
}

/**
 * Creates a prober for the time after recovery. It retries unavailable endpoints
 * until a total timeout in milliseconds, and accepts only right responses.
 */
export function createLastProber(tally: Tally, root: string, patience: number): Prober {
  const deadline = performance.now() + patience;
  const insisting: Pick<Tally, "call"> = {
    async call(door, what, make) {
      for (;;) {
        const outcome = await tally.call(door, what, make);
        if (!untold.includes(outcome.end) || performance.now() > deadline) {
          return outcome;
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
  };
  return createProber(insisting, root, []);
}

/** Probes the records of the load, mostly the newest, until stopped. */
export function startProbes(prober: Prober, ledger: ClusterLedger, doors: readonly Door[]) {
  let isStopped = false;

  async function probe(door: Door): Promise<void> {
    while (!isStopped) {
      const key = recent(ledger.endedKeys);
      const application = recent(ledger.applications);
      const session = recent(ledger.sessions);
      await Promise.all([
        key && prober.endedKey(door, key),
        application && prober.application(door, application),
        session && prober.session(door, session),
      ]);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  const probing = Promise.all(doors.map(probe));
  return {
    async stop() {
      isStopped = true;
      await probing;
    },
  };
}

const memory = 30;

/** One of the last few. */
function recent<T>(all: readonly T[]): T | undefined {
  const last = all.slice(-memory);
  return last[Math.floor(Math.random() * last.length)];
}
