import { Scratch } from "./scratch.js";

const comma = 0x2c;
const quote = 0x22;
const backslash = 0x5c;

/** Up to here a loop is quicker than a call out of JavaScript. */
const shortText = 48;

/** What may not stand in a JSON text as it is, or takes more than a byte. */
const special = /[^ !#-[\]-~]/;

/** The two brackets around the members of an object or the items of a list. */
export interface Brackets {
  readonly open: number;
  readonly close: number;
}
export const braces: Brackets = { open: 0x7b, close: 0x7d };
export const squares: Brackets = { open: 0x5b, close: 0x5d };

/** Writes JSON. */
export class TextWriter extends Scratch {
  /** Where an object or a list begins, for `enclose`. Each of its parts must begin with a comma. */
  get position(): number {
    return this.at;
  }

  /** Ends what began there, and turns the first of the commas into the bracket. */
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

  /** Writes bytes that are known to be JSON. */
  literal(json: Uint8Array): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json[index] as number;
    }
    this.at = at + length;
  }

  /** Writes JSON of ASCII characters. */
  ascii(json: string): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json.charCodeAt(index);
    }
    this.at = at + length;
  }

  /** Writes a text, in quotes. */
  quoted(text: string): void {
    this.reserve(text.length + 2);
    const isWritten = text.length > shortText ? this.#long(text) : this.#short(text);
    if (!isWritten) {
      const json = JSON.stringify(text);
      this.reserve(json.length * 3);
      this.at += this.bytes.write(json, this.at, "utf8");
    }
  }

  /** Writes a text that is long, unless it has a special character. */
  #long(text: string): boolean {
    if (special.test(text)) {
      return false;
    }
    this.bytes[this.at++] = quote;
    this.at += this.bytes.write(text, this.at, "latin1");
    this.bytes[this.at++] = quote;
    return true;
  }

  /** Writes a text that is short, unless it has a special character. */
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
