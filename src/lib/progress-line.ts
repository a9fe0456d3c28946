/** A line that tells how far something is while it is done. */
export interface LiveLine {
  /** Leaves the place free for what is written next. */
  stop(): void;
}

interface LiveLineOptions {
  /** Where it is shown. */
  readonly stream: NodeJS.WriteStream;
  /** Whether it is told at all where nobody watches. */
  readonly tellsUnwatched: boolean;
  /** The line as it is now, for one who watches it or for a log. */
  draw(isWatched: boolean): string;
}

/** Milliseconds between what a terminal shows, and between the lines where there is none. */
const redrawInterval = 200;
const lineInterval = 10_000;

/** Shows one line that changes, or a line every so often where nobody watches. */
export function startLiveLine({ stream, tellsUnwatched, draw }: LiveLineOptions): LiveLine {
  const isWatched = stream.isTTY === true;

  function show(): void {
    const text = draw(isWatched);
    stream.write(
      isWatched ? `\r${text.slice(0, (stream.columns || 80) - 1)}\u001b[K` : `${text}\n`,
    );
  }

  const interval = isWatched ? redrawInterval : lineInterval;
  const timer = isWatched || tellsUnwatched ? setInterval(show, interval) : undefined;

  return {
    stop() {
      clearInterval(timer);
      if (isWatched) {
        stream.write("\r\u001b[K");
      }
    },
  };
}

const barWidth = 20;

/** A share of a whole, as a picture. */
export function barText(share: number): string {
  const filled = Math.floor(Math.min(share, 1) * barWidth);
  return `[${"#".repeat(filled)}${" ".repeat(barWidth - filled)}]`;
}
