import { styleText } from "node:util";

/** Safe and redrawn terminal output. Node's `stripVTControlCharacters` removes escapes but not text direction marks. */

/**
 * Control and format characters, which include terminal escapes and text direction marks. Excludes
 * joiners inside emoji and Arabic words.
 */
const unprintable =
  /(?!(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)\u200d\p{Extended_Pictographic})(?!(?<=\p{sc=Arab})\u200c\p{sc=Arab})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes untrusted text so that it cannot control the terminal. */
export function escapeUnprintable(text: string): string {
  return text.replaceAll(
    unprintable,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

export interface Colors {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
}

type Style = Parameters<typeof styleText>[0];

export function createColors(isOn: boolean): Colors {
  const paint = (style: Style) => (text: string) =>
    isOn && text ? styleText(style, text, { validateStream: false }) : text;
  return {
    good: paint("green"),
    bad: paint("red"),
    warn: paint("yellow"),
    dim: paint("dim"),
    bold: paint("bold"),
  };
}

/** A progress line that is redrawn in place. */
interface ProgressLine {
  /** Stops and clears the line. */
  stop(): void;
}

interface ProgressLineOptions {
  readonly stream: NodeJS.WriteStream;
  /** Whether to print lines if the stream is not a terminal. */
  readonly printsWithoutTerminal: boolean;
  draw(isTerminal: boolean): string;
}

/** Milliseconds between updates: in a terminal, and in a log. */
const redrawInterval = 200;
const lineInterval = 10_000;

/** Redraws one line in a terminal, or prints a line periodically elsewhere. */
export function startProgressLine({
  stream,
  printsWithoutTerminal,
  draw,
}: ProgressLineOptions): ProgressLine {
  const isTerminal = stream.isTTY === true;

  function update(): void {
    const text = draw(isTerminal);
    stream.write(
      isTerminal ? `\r${text.slice(0, (stream.columns || 80) - 1)}\u001b[K` : `${text}\n`,
    );
  }

  const interval = isTerminal ? redrawInterval : lineInterval;
  const timer = isTerminal || printsWithoutTerminal ? setInterval(update, interval) : undefined;

  return {
    stop() {
      clearInterval(timer);
      if (isTerminal) {
        stream.write("\r\u001b[K");
      }
    },
  };
}

/** A number with a comma between thousands. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** A count with its noun: `1 key`, `2,007 keys`. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

const barWidth = 20;

/** A progress bar for a fraction from 0 to 1. */
export function formatBar(fraction: number): string {
  const filled = Math.floor(Math.min(fraction, 1) * barWidth);
  return `[${"#".repeat(filled)}${" ".repeat(barWidth - filled)}]`;
}
