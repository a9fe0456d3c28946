import type { Document } from "mongodb";

export interface Index {
  readonly key: Readonly<Record<string, 1 | -1>>;
  readonly options: {
    readonly expireAfterSeconds?: number;
    readonly partialFilterExpression?: Document;
    readonly sparse?: boolean;
  };
}

/** What a collection is like. */
export interface CollectionSpec {
  readonly name: string;
  readonly indexes: readonly Index[];
  /** What its documents must be like, as JSON Schema in the words of MongoDB. */
  readonly schema: Document;
  /** What else it is made with. */
  readonly options?: Document;
}
