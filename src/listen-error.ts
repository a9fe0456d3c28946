/** Where to listen, and the names of the settings that say so. */
interface Place {
  readonly host: string | undefined;
  readonly port: number;
  readonly names: { readonly host: string; readonly port: string };
}

/** Why nothing can be served at a place, and what to do. */
export function explainListenError(error: NodeJS.ErrnoException, place: Place): Error {
  const { host, port, names } = place;
  const where = `${host ?? "*"}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `${where} is taken by another program: stop it or set ${names.port} to another port`,
      );
    case "EACCES":
      return new Error(`${where} may not be used by this user: set ${names.port} to 1024 or above`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(
        `${where} is not an address of this machine: set ${names.host} to one that is`,
      );
    default:
      return error;
  }
}
