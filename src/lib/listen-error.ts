import { formatHostPort } from "./networks.js";

/** An address to listen on, and the names of its settings. */
interface ListenTarget {
  readonly host: string | undefined;
  readonly port: number;
  readonly names: { readonly host: string; readonly port: string };
}

/** Explains why listening failed and how to fix it. */
export function explainListenError(error: NodeJS.ErrnoException, target: ListenTarget): Error {
  const { host, port, names } = target;
  const address = host === undefined ? `port ${port}` : formatHostPort(host, port);
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `${address} is already in use: stop the other program or set ${names.port} to another port`,
      );
    case "EACCES":
      return new Error(`no permission to listen on ${address}: set ${names.port} to 1024 or above`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(
        `${address} is not an address of this machine: set ${names.host} to a local address`,
      );
    default:
      return error;
  }
}
