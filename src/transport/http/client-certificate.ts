import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

const noNames: readonly string[] = [];

const namesBySocket = new WeakMap<object, readonly string[]>();

/**
 * The names in the client certificate of a connection: the DNS names and URIs,
 * or the common name if there are none. Empty without a verified certificate.
 */
export function certificateNamesOf(socket: Duplex | undefined): readonly string[] {
  if (!(socket instanceof TLSSocket)) {
    return noNames;
  }
  const known = namesBySocket.get(socket);
  if (known) {
    return known;
  }
  const names = socket.authorized ? readNames(socket) : noNames;
  namesBySocket.set(socket, names);
  return names;
}

function readNames(socket: TLSSocket): readonly string[] {
  const { subject, subjectaltname = "" } = socket.getPeerCertificate();
  // Node quotes names with special characters. Such a name matches no setting.
  const names = [...subjectaltname.matchAll(/(?:^|, )(?:DNS|URI):([^",]+)(?=, |$)/g)].flatMap(
    ([, name]) => name ?? [],
  );
  return names.length === 0 && typeof subject?.CN === "string" ? [subject.CN] : names;
}
