import { idFromBytes, writeId } from "../../ids.js";
import type { EventRecord, NewEvent } from "../events.js";

/**
 * A row of `events` is what all are asked for at fixed places, then the rest
 * in JSON:
 *
 *      0  the number of this layout
 *      1  when it took effect
 *      9  tenant
 *     25  id
 *     41  the text
 */
const layoutNumber = 1;
const momentAt = 1;
const tenantAt = 9;
const idAt = 25;
const textAt = 41;

export function toEventRow({ tenantId, ...rest }: NewEvent, id: string, at: number): Buffer {
  const text = JSON.stringify(rest);
  const row = Buffer.allocUnsafe(textAt + Buffer.byteLength(text));
  row[0] = layoutNumber;
  row.writeDoubleBE(at, momentAt);
  writeId(tenantId, row, tenantAt);
  writeId(id, row, idAt);
  row.write(text, textAt);
  return row;
}

export function tenantOf(row: Buffer): string {
  return idFromBytes(row, tenantAt);
}

export function idOf(row: Buffer): string {
  return idFromBytes(row, idAt);
}

export function momentOf(row: Buffer): number {
  return row.readDoubleBE(momentAt);
}

export function readEventRow(row: Buffer): EventRecord {
  const rest = JSON.parse(row.toString("utf8", textAt));
  return { id: idOf(row), at: momentOf(row), tenantId: tenantOf(row), ...rest };
}
