import { ScratchBuffer } from "./scratch-buffer.js";

const comma = 0x2c;
const quote = 0x22;
const backslash = 0x5c;

/** Up to this length a loop is faster than a native call. */
const maxShortLength = 48;

/** Characters that JSON must escape, or that take more than one byte. */
const special = /[^ !#-[\]-~]/;

/** The brackets of an object or array. */
interface Brackets {
  readonly open: number;
  readonly close: number;
}
export const braces: Brackets = { open: 0x7b, close: 0x7d };
export const squares: Brackets = { open: 0x5b, close: 0x5d };

/** Writes JSON. */
export class TextWriter extends ScratchBuffer {
  /** The start of an object or array, for `enclose`. Each of its members must start with a comma. */
  get position(): number {
    return this.at;
  }

  /** Ends an object or array, and replaces its first comma with the opening bracket. */
  enclose(start: number, { open, close }: Brackets): void {
    this.reserve(2);
    this.at = Math.max(this.at, start + 1);
    this.bytes[start] = open;
    this.bytes[this.at++] = close;
  }

  comma(): void {
    this.reserve(1);
    this.bytes[this.at++] = comma;
  }

  /** Writes encoded JSON. */
  literal(json: Uint8Array): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json[index] as number;
    }
    this.at = at + length;
  }

  /** Writes ASCII JSON. */
  ascii(json: string): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json.charCodeAt(index);
    }
    this.at = at + length;
  }

  /** Writes a string in quotes. */
  quoted(text: string): void {
    this.reserve(text.length + 2);
    const isWritten = text.length > maxShortLength ? this.#long(text) : this.#short(text);
    if (!isWritten) {
      const json = JSON.stringify(text);
      this.reserve(json.length * 3);
      this.at += this.bytes.write(json, this.at, "utf8");
    }
  }

  /** Writes a long string. Returns `false` if it has special characters. */
  #long(text: string): boolean {
    if (special.test(text)) {
      return false;
    }
    this.bytes[this.at++] = quote;
    this.at += this.bytes.write(text, this.at, "latin1");
    this.bytes[this.at++] = quote;
    return true;
  }

  /** Writes a short string. Returns `false` if it has special characters. */
  #short(text: string): boolean {
    const { bytes } = this;
    const { length } = text;
    let { at } = this;
    bytes[at++] = quote;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code < 0x20 || code > 0x7e || code === quote || code === backslash) {
        return false;
      }
      bytes[at++] = code;
    }
    bytes[at++] = quote;
    this.at = at;
    return true;
  }
}
