import { styleText } from "node:util";
import type { ClientEnvironment } from "./client-environment.js";

/** Paints texts, or leaves them as they are. */
export interface Colours {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  /** What matters less. */
  faint(text: string): string;
  strong(text: string): string;
}

type Style = Parameters<typeof styleText>[0];

/** Colours are for people: a terminal has them unless the environment says otherwise. */
export function createColours(
  { isTTY }: Pick<NodeJS.WriteStream, "isTTY">,
  { colours: wish }: Pick<ClientEnvironment, "colours">,
): Colours {
  const isOn = wish ?? isTTY === true;
  // Whether the stream has colours is decided here.
  const paint = (style: Style) => (text: string) =>
    isOn && text ? styleText(style, text, { validateStream: false }) : text;
  return {
    good: paint("green"),
    bad: paint("red"),
    warn: paint("yellow"),
    faint: paint("dim"),
    strong: paint("bold"),
  };
}
