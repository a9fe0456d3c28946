/** The headers of an answer: names and values in turn. */
export type HeaderList = readonly string[];
