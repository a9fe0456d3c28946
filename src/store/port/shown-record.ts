/**
 * Where an answer shows what one version of a record holds, when that was last
 * used, and nothing else, the record is found under this name.
 */
export const shownRecord = Symbol("the record that the answer shows");

/** An answer that may show one version of a record. All that show the same are alike. */
export interface ShowsRecord {
  readonly [shownRecord]?: {
    readonly id: string;
    readonly version: number;
    readonly lastUsedAt?: number | undefined;
    /** The answer in the JSON of REST, where it is kept with the record. */
    readonly document?: Buffer | undefined;
  };
}
