import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Signs reports like GitHub's secret scanning. */
export interface SecretScanner {
  readonly id: string;
  /** The public key as GitHub serves it. */
  readonly publicKey: { key_identifier: string; key: string; is_current: boolean };
  /** The headers of a signed body. */
  headersFor(body: string | Uint8Array): Record<string, string>;
}

let count = 0;

export function createSecretScanner(namedCurve = "P-256"): SecretScanner {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve });
  const id = `key-${++count}`;
  return {
    id,
    publicKey: { key_identifier: id, key: toPem(publicKey), is_current: true },
    headersFor: (body) => ({
      "content-type": "application/json",
      "github-public-key-identifier": id,
      "github-public-key-signature": sign("sha256", Buffer.from(body), privateKey).toString(
        "base64",
      ),
    }),
  };
}

function toPem(key: KeyObject): string {
  return key.export({ type: "spki", format: "pem" }).toString();
}

/** A file of public keys that can be replaced. */
export function createKeyFile(...scanners: readonly SecretScanner[]) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-signing-keys-"));
  const path = join(folder, "keys.json");
  const replace = (content: string) => {
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
  };
  const write = (...scanners: readonly SecretScanner[]) =>
    replace(JSON.stringify({ public_keys: scanners.map(({ publicKey }) => publicKey) }));
  write(...scanners);
  return { folder, path, write, replace };
}
