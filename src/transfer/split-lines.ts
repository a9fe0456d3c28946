/** A line of a file, without its end. */
export interface SplitLine {
  /** The first has number one. */
  readonly number: number;
  readonly bytes: Buffer;
  /** How many bytes of the file come before the next line. */
  readonly end: number;
  /** Whether the file has all of it: the last line of one that was cut off may have no end. */
  readonly isWhole: boolean;
  /** Whether it is longer than any record, so that only the beginning of it is kept. */
  readonly isTooLong: boolean;
}

/** The largest record is far smaller: requests have a limit. */
const longestLine = 32 * 1024 * 1024;

const newline = 0x0a;

/** Splits a file into lines, of which only one is held at a time. */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  longest = longestLine,
): AsyncGenerator<SplitLine, void, void> {
  let parts: Buffer[] = [];
  let size = 0;
  let number = 0;
  let end = 0;

  function keep(part: Buffer): void {
    size += part.length;
    if (size <= longest) {
      parts.push(part);
    }
  }

  function take(isWhole: boolean): SplitLine {
    const [only, ...more] = parts;
    const bytes = only && more.length === 0 ? only : Buffer.concat(parts);
    number++;
    end += size + (isWhole ? 1 : 0);
    const isTooLong = size > longest;
    parts = [];
    size = 0;
    return { number, bytes, end, isWhole, isTooLong };
  }

  for await (const chunk of chunks) {
    let start = 0;
    for (;;) {
      const at = chunk.indexOf(newline, start);
      if (at < 0) {
        break;
      }
      keep(chunk.subarray(start, at));
      yield take(true);
      start = at + 1;
    }
    if (start < chunk.length) {
      keep(chunk.subarray(start));
    }
  }
  if (size > 0) {
    yield take(false);
  }
}
