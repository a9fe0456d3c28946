import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { file, type SettingReader } from "./parsers.js";

export interface TlsSettings {
  readonly files: TlsFiles;
  /** What the files hold at the start. */
  readonly contents: TlsContents;
}

export function readTls(read: SettingReader): TlsSettings | undefined {
  const cert = read("TLS_CERT", file);
  const key = read("TLS_KEY", file);
  const clientCa = read("TLS_CLIENT_CA", file);
  if (read.isSet("TLS_CERT") !== read.isSet("TLS_KEY")) {
    read.problems.push("TLS_CERT and TLS_KEY go together: set both or none");
  }
  if (read.isSet("TLS_CLIENT_CA") && !read.isSet("TLS_CERT")) {
    read.problems.push(
      "TLS_CLIENT_CA needs TLS_CERT and TLS_KEY: clients show theirs over TLS alone",
    );
  }
  if (!cert || !key) {
    return undefined;
  }
  const files = { cert: cert.path, key: key.path, clientCa: clientCa?.path };
  const contents = { cert: cert.content, key: key.content, clientCa: clientCa?.content };
  const fault = tlsFaultIn(contents);
  if (fault) {
    read.problems.push(fault);
  }
  return { files, contents };
}

/** Where the certificate of the service, its key and the authority of its clients lie, as PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Where it is given, only clients with a certificate of this authority are served. */
  readonly clientCa?: string | undefined;
}

/** What the files hold. */
export interface TlsContents {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa?: Buffer | undefined;
}

/** Reads the files as they are now. */
export async function readTlsFiles({ cert, key, clientCa }: TlsFiles): Promise<TlsContents> {
  return {
    cert: await readFile(cert),
    key: await readFile(key),
    clientCa: clientCa === undefined ? undefined : await readFile(clientCa),
  };
}

/** What is wrong with them, in words that follow the names of the settings. */
export function tlsFaultIn({ cert, key, clientCa }: TlsContents): string | undefined {
  if (!isPair(cert, key)) {
    return "TLS_CERT and TLS_KEY must be a certificate and its key, as PEM files";
  }
  if (clientCa && !isCertificate(clientCa)) {
    return "TLS_CLIENT_CA must be the certificate of an authority, as a PEM file";
  }
  return undefined;
}

/** A key of another kind than the certificate's would be taken without a word, and no handshake would work. */
function isPair(cert: Buffer, key: Buffer): boolean {
  try {
    createSecureContext({ cert, key });
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** A text in which there is none would be taken without a word, and no client would be let in. */
function isCertificate(pem: Buffer): boolean {
  try {
    createSecureContext({ ca: pem });
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
