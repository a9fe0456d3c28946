import pino, { type Logger } from "pino";
import { firstKeyBanner, urlOf } from "./banner.js";
import { type Bootstrapped, bootstrap } from "./bootstrap.js";
import type { Settings } from "./config.js";
import { createKeyring } from "./keys.js";
import { openStore } from "./open-store.js";
import { createServer } from "./server/server.js";
import type { Store } from "./store/store.js";

/** Runs the service until it is told to stop. */
export async function serve(settings: Settings): Promise<void> {
  const log = pino(
    { level: settings.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    // Lines are written together, off the way of a request; exiting writes the rest.
    pino.destination({ sync: false, minLength: 4096, periodicFlush: 200 }),
  );
  const store = await openStore(settings.store);
  try {
    await serveFrom(store, settings, log);
  } finally {
    await store.close();
  }
  log.info("stopped");
  log.flush();
}

async function serveFrom(store: Store, settings: Settings, log: Logger): Promise<void> {
  const server = createServer({ store, settings, log });
  const address = await server.listen().catch((error: NodeJS.ErrnoException) => {
    throw explainListenError(error, settings);
  });
  try {
    const first = await firstKey(store, settings);
    if (first) {
      process.stdout.write(firstKeyBanner(first, address, settings));
    }
    log.info({ store: settings.store.kind }, `listening at ${urlOf(address, settings)}`);
    log.info(`stopping on ${await stopSignal()}`);
  } finally {
    await server.close();
  }
}

/** A newcomer with an empty embedded store needs a key; in production an operator makes it. */
async function firstKey(store: Store, settings: Settings): Promise<Bootstrapped | undefined> {
  if (settings.store.kind !== "embedded" || !(await store.applications.isEmpty())) {
    return undefined;
  }
  return bootstrap({ store, keyring: createKeyring(settings.peppers) });
}

/** The first signal to stop. Those that follow, as from a terminal and npm at once, change nothing. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    process.on("SIGINT", resolve);
  });
}

function explainListenError(error: NodeJS.ErrnoException, { host, port }: Settings): Error {
  const where = `${host ?? "*"}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(`${where} is taken by another program: stop it or set PORT to another port`);
    case "EACCES":
      return new Error(`${where} may not be used by this user: set PORT to 1024 or above`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(`${where} is not an address of this machine: set HOST to one that is`);
    default:
      return error;
  }
}
