import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { SettingReader } from "./definitions.js";

export interface TlsSettings {
  readonly files: TlsFiles;
  /** The contents at startup. */
  readonly contents: TlsContents;
}

export function readTls(read: SettingReader): TlsSettings | undefined {
  const cert = read("TLS_CERT");
  const key = read("TLS_KEY");
  const clientCa = read("TLS_CLIENT_CA");
  if (read.isSet("TLS_CERT") !== read.isSet("TLS_KEY")) {
    read.problems.push("TLS_CERT and TLS_KEY must be set together: set both or neither");
  }
  if (read.isSet("TLS_CLIENT_CA") && !read.isSet("TLS_CERT")) {
    read.problems.push(
      "TLS_CLIENT_CA needs TLS_CERT and TLS_KEY: set all three, or unset TLS_CLIENT_CA",
    );
  }
  if (!cert || !key) {
    return undefined;
  }
  const files = { cert: cert.path, key: key.path, clientCa: clientCa?.path };
  const contents = { cert: cert.content, key: key.content, clientCa: clientCa?.content };
  const problem = findTlsProblem(contents);
  if (problem) {
    read.problems.push(problem);
  }
  return { files, contents };
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** If set, clients must present a certificate issued by this authority. */
  readonly clientCa?: string | undefined;
}

export interface TlsContents {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa?: Buffer | undefined;
}

export async function readTlsFiles({ cert, key, clientCa }: TlsFiles): Promise<TlsContents> {
  return {
    cert: await readFile(cert),
    key: await readFile(key),
    clientCa: clientCa === undefined ? undefined : await readFile(clientCa),
  };
}

/** Describes the first problem of the files, by setting name. */
export function findTlsProblem({ cert, key, clientCa }: TlsContents): string | undefined {
  if (!isPair(cert, key)) {
    return "TLS_CERT and TLS_KEY must be PEM files with a certificate and its private key";
  }
  if (clientCa && !isCertificate(clientCa)) {
    return "TLS_CLIENT_CA must be a PEM file with the certificate of a certificate authority";
  }
  return undefined;
}

/** `createSecureContext` accepts a key of another type than the certificate's; every handshake would then fail. */
function isPair(cert: Buffer, key: Buffer): boolean {
  try {
    createSecureContext({ cert, key });
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** `createSecureContext` accepts a file without certificates; every client would then be refused. */
function isCertificate(pem: Buffer): boolean {
  try {
    createSecureContext({ ca: pem });
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
