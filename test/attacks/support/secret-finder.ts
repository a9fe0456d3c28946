/** Finds secrets in whatever was written, in the forms in which they may have got there. */
export interface SecretFinder {
  /** Looks for one more from now on. */
  add(secret: string): void;
  /** The secrets in a text or in bytes, each with its form. */
  find(where: string | Buffer): string[];
}

/** Where the part of a key or nonce begins and ends that nobody can guess. */
const secretStart = 29;
const secretEnd = 62;

export function createSecretFinder(): SecretFinder {
  const needles = new Map<number, { bytes: Buffer; is: string }[]>();
  /** By the first four bytes, drawn together: nearly all places in a file can be passed over at one glance. */
  const mayBegin = new Uint8Array(2 ** 20);
  const known = new Set<string>();

  return {
    add(secret) {
      if (known.has(secret)) {
        return;
      }
      known.add(secret);
      for (const [form, text] of formsOf(secret.slice(secretStart, secretEnd))) {
        const bytes = Buffer.from(text);
        const start = bytes.readInt32BE();
        mayBegin[slotOf(start)] = 1;
        const is = `${secret}, ${form}`;
        needles.set(start, [...(needles.get(start) ?? []), { bytes, is }]);
      }
    },

    find(where) {
      const bytes = typeof where === "string" ? Buffer.from(where) : where;
      const found = new Set<string>();
      let last = 0;
      for (let end = 0; end < bytes.length; end++) {
        last = (last << 8) | (bytes[end] as number);
        if (mayBegin[slotOf(last)] === 1) {
          const at = end - 3;
          for (const needle of needles.get(last) ?? []) {
            if (bytes.subarray(at, at + needle.bytes.length).equals(needle.bytes)) {
              found.add(needle.is);
            }
          }
        }
      }
      return [...found];
    },
  };
}

/** Kept, since a test runner looks globals up slowly, and this is asked for at every byte. */
const { imul } = Math;

/** A place among 2^20 for four bytes. */
function slotOf(four: number): number {
  return imul(four, 0x9e3779b1) >>> 12;
}

/** The text as it is, and encoded: in Base64 it depends on its place in what was encoded. */
function formsOf(text: string): [form: string, text: string][] {
  const hex = Buffer.from(text).toString("hex");
  const ofPlaces = [0, 1, 2].map((before) => {
    const encoded = Buffer.from("x".repeat(before) + text).toString("base64");
    // What the letters before and after have a share in is left out.
    return encoded.slice(before === 0 ? 0 : 4, -4);
  });
  return [
    ["as it is", text],
    ["half of it", text.slice(0, 17)],
    ["its other half", text.slice(-17)],
    ["in hexadecimal", hex],
    ["in hexadecimal", hex.toUpperCase()],
    ...ofPlaces.map((part): [string, string] => ["in Base64", part]),
    ...ofPlaces.map((part): [string, string] => [
      "in Base64 for URLs",
      part.replaceAll("+", "-").replaceAll("/", "_"),
    ]),
    ["backwards", [...text].reverse().join("")],
  ];
}
