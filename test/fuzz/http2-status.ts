/** The statuses in HPACK's static table, at the indexes from 8 to 14. */
const indexed = [200, 204, 206, 304, 400, 404, 500];
const [firstStatus, lastStatus] = [8, 14];

/** The Huffman codes of digits: 0 to 2 take five bits, the others six. */
const huffmanDigits = new Map<string, string>([
  ...["00000", "00001", "00010"].map((bits, digit) => [bits, String(digit)] as const),
  ...Array.from(
    { length: 7 },
    (_, at) => [(0b011001 + at).toString(2).padStart(6, "0"), String(at + 3)] as const,
  ),
]);

/**
 * Reads the status at the start of a header block: an index, or an indexed name
 * with a literal value. Throws if there is none.
 */
export function readStatus(block: Buffer): number {
  // The block may start with table size updates.
  let at = 0;
  while (((block[at] ?? 0) & 0xe0) === 0x20) {
    at = findEndOfInteger(block, at, 0x1f);
  }
  const first = block[at] ?? 0;
  if ((first & 0x80) !== 0) {
    const status = indexed[(first & 0x7f) - firstStatus];
    return status ?? fail(block);
  }
  // The name is indexed, whether the field is added to the table or not.
  const name = (first & 0x40) !== 0 ? first & 0x3f : first & 0x0f;
  if (name < firstStatus || name > lastStatus) {
    return fail(block);
  }
  const length = block[at + 1] ?? 0;
  const value = block.subarray(at + 2, at + 2 + (length & 0x7f));
  const digits = (length & 0x80) === 0 ? value.toString("latin1") : decodeHuffman(value);
  return /^[1-5]\d\d$/.test(digits) ? Number(digits) : fail(block);
}

/** Returns where a prefixed integer ends. */
function findEndOfInteger(block: Buffer, at: number, mask: number): number {
  let end = at + 1;
  if (((block[at] ?? 0) & mask) === mask) {
    while (((block[end] ?? 0) & 0x80) !== 0) {
      end++;
    }
    end++;
  }
  return end;
}

function decodeHuffman(value: Buffer): string {
  const bits = [...value].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let digits = "";
  for (let at = 0; at < bits.length; ) {
    const length = [5, 6].find((size) => huffmanDigits.has(bits.slice(at, at + size)));
    if (length === undefined) {
      // The last byte is padded with ones.
      return /^1{1,7}$/.test(bits.slice(at)) ? digits : "";
    }
    digits += huffmanDigits.get(bits.slice(at, at + length));
    at += length;
  }
  return digits;
}

function fail(block: Buffer): never {
  throw new Error(`The header block starts with no status: ${block.toString("hex")}`);
}
