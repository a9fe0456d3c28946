import { formatBar, formatCount, startProgressLine } from "../lib/terminal.js";

interface TransferState {
  readonly records: number;
  readonly bytes: number;
  /** The total, if known. */
  readonly ofBytes?: number | undefined;
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
  readonly ofBytes?: number | undefined;
  readonly stream: NodeJS.WriteStream;
  /** Whether to print progress if the stream is not a terminal. */
  readonly printsWithoutTerminal: boolean;
}

/** Shows progress: a line that is redrawn on a terminal, or a line from time to time. */
export function startProgress({
  verb,
  ofBytes,
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
      const state = { records, bytes, ofBytes, elapsed: performance.now() - start };
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

function shareOf({ bytes, ofBytes }: TransferState): number | undefined {
  return ofBytes ? Math.min(bytes / ofBytes, 1) : undefined;
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
