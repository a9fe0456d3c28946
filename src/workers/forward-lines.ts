import type { Readable } from "node:stream";
import type { LineWriter } from "../line-writer.js";

/** Passes on what a worker writes, in whole lines, so that those of several workers never mix. */
export function forwardLines(from: Readable, to: LineWriter): void {
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) {
      to.write(rest + text.slice(0, end));
      rest = "";
    }
    rest += text.slice(end);
  });
  from.on("end", () => {
    if (rest !== "") {
      to.write(`${rest}\n`);
    }
  });
}
