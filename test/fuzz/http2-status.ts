/** The statuses that HPACK has a number for, from 8 on. */
const numbered = [200, 204, 206, 304, 400, 404, 500];
const [firstStatus, lastStatus] = [8, 14];

/** How digits are shortened: 0 to 2 take five bits, the others six. */
const shortened = new Map<string, string>([
  ...["00000", "00001", "00010"].map((bits, digit) => [bits, String(digit)] as const),
  ...Array.from(
    { length: 7 },
    (_, at) => [(0b011001 + at).toString(2).padStart(6, "0"), String(at + 3)] as const,
  ),
]);

/**
 * The status of an answer, which begins its block of headers: by the number
 * that it has, or by the number of its name and its digits. Not to know it is
 * a failure, and never a status that would pass.
 */
export function statusIn(block: Buffer): number {
  // The size of the table may be told first.
  let at = 0;
  while (((block[at] ?? 0) & 0xe0) === 0x20) {
    at = endOfNumber(block, at, 0x1f);
  }
  const first = block[at] ?? 0;
  if ((first & 0x80) !== 0) {
    const status = numbered[(first & 0x7f) - firstStatus];
    return status ?? unknown(block);
  }
  // Whether it is to be kept in the table or not, its name has a number of its own.
  const name = (first & 0x40) !== 0 ? first & 0x3f : first & 0x0f;
  if (name < firstStatus || name > lastStatus) {
    return unknown(block);
  }
  const length = block[at + 1] ?? 0;
  const value = block.subarray(at + 2, at + 2 + (length & 0x7f));
  const digits = (length & 0x80) === 0 ? value.toString("latin1") : lengthened(value);
  return /^[1-5]\d\d$/.test(digits) ? Number(digits) : unknown(block);
}

/** Where a number ends that begins in some bits of a byte. */
function endOfNumber(block: Buffer, at: number, mask: number): number {
  let end = at + 1;
  if (((block[at] ?? 0) & mask) === mask) {
    while (((block[end] ?? 0) & 0x80) !== 0) {
      end++;
    }
    end++;
  }
  return end;
}

function lengthened(value: Buffer): string {
  const bits = [...value].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let digits = "";
  for (let at = 0; at < bits.length; ) {
    const length = [5, 6].find((size) => shortened.has(bits.slice(at, at + size)));
    if (length === undefined) {
      // What fills the last byte up is all ones.
      return /^1{1,7}$/.test(bits.slice(at)) ? digits : "";
    }
    digits += shortened.get(bits.slice(at, at + length));
    at += length;
  }
  return digits;
}

function unknown(block: Buffer): never {
  throw new Error(`This begins with no status: ${block.toString("hex")}`);
}
