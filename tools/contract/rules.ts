/** A CEL rule and its error message. */
export interface Rule {
  readonly message: string;
  readonly expression: string;
}

/**
 * The protovalidate rules of a field or of the items of a list, in protobuf
 * JSON: 64-bit numbers are strings, and the keys of our own rules are
 * `[their.full.name]`.
 */
export interface FieldRules {
  readonly required?: boolean;
  readonly cel?: readonly Rule[];
  readonly string?: StringRules;
  readonly int32?: Int32Rules;
  readonly bool?: { readonly example?: readonly boolean[] };
  readonly repeated?: RepeatedRules;
  readonly duration?: DurationRules;
  readonly field_mask?: { readonly in?: readonly string[]; readonly example?: readonly string[] };
  readonly timestamp?: { readonly example?: readonly string[] };
}

export interface StringRules {
  readonly min_len?: string;
  readonly max_len?: string;
  readonly pattern?: string;
  readonly in?: readonly string[];
  readonly uuid?: boolean;
  readonly example?: readonly string[];
}

export interface Int32Rules {
  readonly lt?: number;
  readonly lte?: number;
  readonly gt?: number;
  readonly gte?: number;
  readonly example?: readonly number[];
}

interface DurationRules {
  readonly lt?: string;
  readonly lte?: string;
  readonly gt?: string;
  readonly gte?: string;
  readonly example?: readonly string[];
}

export interface RepeatedRules {
  readonly min_items?: string;
  readonly max_items?: string;
  readonly unique?: boolean;
  readonly items?: FieldRules;
}
