import { file } from "./setting-parsers.js";
import type { SettingReader } from "./setting-reader.js";
import { type TlsContents, type TlsFiles, tlsFaultIn } from "./tls-files.js";

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
