import { formatBar, formatCount, startProgressLine } from "../lib/terminal.js";

interface TransferState {
  readonly records: number;
  readonly bytes: number;
  /** If known. */
  readonly totalBytes?: number | undefined;
  /** In milliseconds. */
  readonly elapsed: number;
}

export interface Progress {
  advance(records: number, bytes: number): void;
  stop(): void;
}

interface ProgressOptions {
  /** For example `imported`. */
  readonly verb: string;
  readonly totalBytes?: number | undefined;
  readonly stream: NodeJS.WriteStream;
  /** Whether to print progress if the stream is not a terminal. */
  readonly printsWithoutTerminal: boolean;
}

/** Shows progress: a line that is redrawn on a terminal, or a line from time to time. */
export function startProgress({
  verb,
  totalBytes,
  stream,
  printsWithoutTerminal,
}: ProgressOptions): Progress {
  const start = performance.now();
  let records = 0;
  let bytes = 0;
  const line = startProgressLine({
    stream,
    printsWithoutTerminal,
    draw(isWatched) {
      const state = { records, bytes, totalBytes, elapsed: performance.now() - start };
      const text = progressLine(verb, state);
      return isWatched ? `${progressBar(state)}${text}` : text;
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

export function progressLine(verb: string, state: TransferState): string {
  const { records, bytes, elapsed } = state;
  const rate = elapsed > 0 ? (records / elapsed) * 1000 : 0;
  const done = `${verb} ${formatCount(records)} records, ${formatSize(bytes)}, ${formatCount(rate)}/s`;
  const share = shareOf(state);
  if (share === undefined) {
    return done;
  }
  const left = share > 0 ? `, ${formatTime((elapsed / share) * (1 - share))} left` : "";
  return `${Math.floor(share * 100)}% ${done}${left}`;
}

/** A progress bar, if the total is known. */
export function progressBar(state: TransferState): string {
  const share = shareOf(state);
  return share === undefined ? "" : `${formatBar(share)} `;
}

function shareOf({ bytes, totalBytes }: TransferState): number | undefined {
  return totalBytes ? Math.min(bytes / totalBytes, 1) : undefined;
}

export function formatSize(bytes: number): string {
  const megabytes = bytes / 1024 / 1024;
  return megabytes >= 1 ? `${megabytes.toFixed(1)} MB` : `${Math.ceil(bytes / 1024)} kB`;
}

function formatTime(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const text = `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
  return hours > 0 ? `${hours}:${text.padStart(5, "0")}` : text;
}
