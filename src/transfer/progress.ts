import { barText, startLiveLine } from "../lib/progress-line.js";

/** How far something has come. */
export interface Standing {
  readonly records: number;
  readonly bytes: number;
  /** How many bytes there will be, where that is known. */
  readonly ofBytes?: number | undefined;
  /** Milliseconds since it began. */
  readonly elapsed: number;
}

export interface Progress {
  /** Tells that so many more are done. */
  advance(records: number, bytes: number): void;
  /** Leaves the place free for what is written next. */
  stop(): void;
}

interface ProgressOptions {
  /** What is done, for example `imported`. */
  readonly word: string;
  readonly ofBytes?: number | undefined;
  /** Where it is shown. */
  readonly stream: NodeJS.WriteStream;
  /** Whether it is told at all where nobody watches. */
  readonly tellsUnwatched: boolean;
}

/** Shows how far something has come: as one line that changes, or as a line every so often. */
export function startProgress({
  word,
  ofBytes,
  stream,
  tellsUnwatched,
}: ProgressOptions): Progress {
  const start = performance.now();
  let records = 0;
  let bytes = 0;
  const line = startLiveLine({
    stream,
    tellsUnwatched,
    draw(isWatched) {
      const standing = { records, bytes, ofBytes, elapsed: performance.now() - start };
      const text = progressLine(word, standing);
      return isWatched ? `${progressBar(standing)}${text}` : text;
    },
  });

  return {
    advance(moreRecords, moreBytes) {
      records += moreRecords;
      bytes += moreBytes;
    },
    stop: line.stop,
  };
}

/** How far it is, in one line. */
export function progressLine(word: string, standing: Standing): string {
  const { records, bytes, elapsed } = standing;
  const rate = elapsed > 0 ? (records / elapsed) * 1000 : 0;
  const done = `${word} ${grouped(records)} records, ${sizeText(bytes)}, ${grouped(rate)}/s`;
  const share = shareOf(standing);
  if (share === undefined) {
    return done;
  }
  const left = share > 0 ? `, ${timeText((elapsed / share) * (1 - share))} left` : "";
  return `${Math.floor(share * 100)}% ${done}${left}`;
}

/** The same as a picture, where it is known how far there is to go. */
export function progressBar(standing: Standing): string {
  const share = shareOf(standing);
  return share === undefined ? "" : `${barText(share)} `;
}

function shareOf({ bytes, ofBytes }: Standing): number | undefined {
  return ofBytes ? Math.min(bytes / ofBytes, 1) : undefined;
}

function grouped(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

export function sizeText(bytes: number): string {
  const megabytes = bytes / 1024 / 1024;
  return megabytes >= 1 ? `${megabytes.toFixed(1)} MB` : `${Math.ceil(bytes / 1024)} kB`;
}

function timeText(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const text = `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
  return hours > 0 ? `${hours}:${text.padStart(5, "0")}` : text;
}
