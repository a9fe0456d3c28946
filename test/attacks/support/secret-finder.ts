/** Finds secrets in text or bytes, in plain and in encoded forms. */
export interface SecretFinder {
  /** Adds a secret to search for. */
  add(secret: string): void;
  /** Returns the secrets found, each with its form. */
  find(content: string | Buffer): string[];
}

/** The range of the random part of a key or nonce. */
const secretStart = 29;
const secretEnd = 62;

export function createSecretFinder(): SecretFinder {
  const needles = new Map<number, { bytes: Buffer; label: string }[]>();
  /** A filter by the hash of the first four bytes. It skips nearly all positions quickly. */
  const prefixFilter = new Uint8Array(2 ** 20);
  const added = new Set<string>();

  return {
    add(secret) {
      if (added.has(secret)) {
        return;
      }
      added.add(secret);
      for (const [form, text] of encodeForms(secret.slice(secretStart, secretEnd))) {
        const bytes = Buffer.from(text);
        const start = bytes.readInt32BE();
        prefixFilter[hashPrefix(start)] = 1;
        const label = `${secret}, ${form}`;
        needles.set(start, [...(needles.get(start) ?? []), { bytes, label }]);
      }
    },

    find(content) {
      const bytes = typeof content === "string" ? Buffer.from(content) : content;
      const found = new Set<string>();
      let lastFour = 0;
      for (let end = 0; end < bytes.length; end++) {
        lastFour = (lastFour << 8) | (bytes[end] as number);
        if (prefixFilter[hashPrefix(lastFour)] === 1) {
          const at = end - 3;
          for (const needle of needles.get(lastFour) ?? []) {
            if (bytes.subarray(at, at + needle.bytes.length).equals(needle.bytes)) {
              found.add(needle.label);
            }
          }
        }
      }
      return [...found];
    },
  };
}

/** Cached, because global lookups are slow in jest and this runs for every byte. */
const { imul } = Math;

/** Hashes four bytes to 20 bits. */
function hashPrefix(prefix: number): number {
  return imul(prefix, 0x9e3779b1) >>> 12;
}

/** The text in plain and encoded forms. In Base64 it depends on its offset in the input. */
function encodeForms(text: string): [form: string, text: string][] {
  const hex = Buffer.from(text).toString("hex");
  const base64Variants = [0, 1, 2].map((before) => {
    const encoded = Buffer.from("x".repeat(before) + text).toString("base64");
    // Without the characters that also encode adjacent bytes.
    return encoded.slice(before === 0 ? 0 : 4, -4);
  });
  return [
    ["plain", text],
    ["first half", text.slice(0, 17)],
    ["second half", text.slice(-17)],
    ["in hexadecimal", hex],
    ["in hexadecimal", hex.toUpperCase()],
    ...base64Variants.map((part): [string, string] => ["in Base64", part]),
    ...base64Variants.map((part): [string, string] => [
      "in Base64 for URLs",
      part.replaceAll("+", "-").replaceAll("/", "_"),
    ]),
    ["reversed", [...text].reverse().join("")],
  ];
}
