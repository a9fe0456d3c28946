/**
 * Rows as folders of schema 1 and 2 have them: a version, then the record in
 * JSON, its hashes in base 64. They are read for as long as they are not
 * written anew.
 */
const versionSize = 8;

/** The first byte of a version, which is a double of at least 1. Layouts have smaller numbers. */
const leastFirstByte = 0x3f;

export function isTextRow(row: Buffer): boolean {
  return (row[0] as number) >= leastFirstByte;
}

export function readTextRow<R>(
  row: Buffer,
  hashes: readonly (keyof R & string)[],
): R & { readonly version: number } {
  const record = JSON.parse(row.toString("utf8", versionSize));
  for (const name of hashes) {
    record[name] = Buffer.from(record[name], "base64");
  }
  return { ...record, version: row.readDoubleBE(0) };
}
