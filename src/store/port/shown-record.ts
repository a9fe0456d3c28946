/**
 * Marks a response that depends only on one version of a record and its last
 * use. The value is that record.
 */
export const shownRecord = Symbol("shownRecord");

/** A response that may be marked. Responses of the same version and last use are equal. */
export interface ShowsRecord {
  readonly [shownRecord]?: {
    readonly id: string;
    readonly version: number;
    readonly lastUsedAt?: number | undefined;
    /** The response as REST JSON, if it is stored with the record. */
    readonly document?: Buffer | undefined;
  };
}
