/** Where an answer brings along the text that REST would write of it, that is found under this name. */
export const restText = Symbol("the answer in the JSON of REST");

/** An answer that may bring its text along. */
export interface WithRestText {
  readonly [restText]?: Uint8Array | undefined;
}
