import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { firstKeyBanner } from "./banner.js";
import { type Bootstrapped, bootstrap } from "./bootstrap.js";
import type { Settings } from "./config.js";
import { createKeyring } from "./keys.js";
import { openStore } from "./open-store.js";
import { createServer } from "./server/server.js";
import type { Store } from "./store/store.js";

interface ServeOptions {
  readonly settings: Settings;
  readonly log: Logger;
  /** Whether it is for this process to greet a newcomer. */
  readonly showsFirstKey: boolean;
  /** Called with where the service is, once it is there. It stops when this resolves. */
  readonly untilStopped: (address: AddressInfo) => Promise<unknown>;
}

/** Serves in this process. */
export async function serve(options: ServeOptions): Promise<void> {
  const store = await openStore(options.settings);
  try {
    await serveFrom(store, options);
  } finally {
    await store.close();
  }
}

async function serveFrom(store: Store, options: ServeOptions): Promise<void> {
  const { settings, log, showsFirstKey, untilStopped } = options;
  const server = createServer({ store, settings, log });
  const address = await server.listen().catch((error: NodeJS.ErrnoException) => {
    throw explainListenError(error, settings);
  });
  try {
    const first = showsFirstKey && (await firstKey(store, settings));
    if (first) {
      process.stdout.write(firstKeyBanner(first, address, settings));
    }
    await untilStopped(address);
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
