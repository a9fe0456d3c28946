import { pathToString } from "@bufbuild/protobuf/reflect";
import { Plus, X } from "lucide-react";
import { useRef } from "react";
import { CreateApplicationRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { Button, IconButton } from "../../ui/buttons.js";
import { FieldErrorText, TextField } from "../../ui/fields.js";
import type { FieldErrors } from "../../validation/validate.js";

/** A row of the form. */
export interface Pair {
  readonly key: string;
  readonly value: string;
}

export function toPairs(metadata: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(metadata).map(([key, value]) => ({ key, value }));
}

/** Leaves out blank rows. */
export function fromPairs(pairs: readonly Pair[]): Record<string, string> {
  return Object.fromEntries(
    pairs.filter((pair) => !isBlank(pair)).map(({ key, value }) => [key, value]),
  );
}

function isBlank({ key, value }: Pair): boolean {
  return key === "" && value === "";
}

/** A map has each key once, so only the rows can show duplicates. */
export function pairErrors(pairs: readonly Pair[]): FieldErrors {
  const keys = pairs.filter((pair) => !isBlank(pair)).map(({ key }) => key);
  const duplicates = keys.filter((key, index) => keys.indexOf(key) < index);
  return Object.fromEntries(duplicates.map((key) => [pathOf(key), ["key is used more than once"]]));
}

/** The path of a pair in the errors of the service. */
function pathOf(key: string): string {
  const { metadata } = CreateApplicationRequestSchema.field;
  return pathToString([metadata, { kind: "map_sub", key }]);
}

interface MetadataFieldProps {
  readonly pairs: readonly Pair[];
  readonly errors: FieldErrors;
  onChange(pairs: readonly Pair[]): void;
}

export function MetadataField({ pairs, errors, onChange }: MetadataFieldProps) {
  const addButton = useRef<HTMLButtonElement>(null);

  function remove(index: number): void {
    onChange(pairs.toSpliced(index, 1));
    // The pressed button is gone.
    addButton.current?.focus();
  }

  return (
    <fieldset className="options metadata">
      <legend className="visually-hidden">Metadata</legend>
      <p className="hint">
        Key-value pairs for your own use, such as the owner or the cost center.
      </p>
      {pairs.map((pair, index) => (
        <PairFields
          // biome-ignore lint/suspicious/noArrayIndexKey: pairs have no id and keep their order.
          key={index}
          pair={pair}
          errors={isBlank(pair) ? undefined : errors[pathOf(pair.key)]}
          onChange={(changed) => onChange(pairs.with(index, changed))}
          onRemove={() => remove(index)}
        />
      ))}
      <div>
        <Button
          ref={addButton}
          icon={Plus}
          onClick={() => onChange([...pairs, { key: "", value: "" }])}
        >
          Add metadata
        </Button>
      </div>
      <FieldErrorText label="Metadata" errors={errors.metadata} />
    </fieldset>
  );
}

interface PairFieldsProps {
  readonly pair: Pair;
  readonly errors: readonly string[] | undefined;
  onChange(pair: Pair): void;
  onRemove(): void;
}

function PairFields({ pair, errors = [], onChange, onRemove }: PairFieldsProps) {
  const isAboutKey = (message: string) => message.startsWith("key ");
  return (
    <div className="pair">
      <TextField
        label="Key"
        errors={errors.filter(isAboutKey)}
        value={pair.key}
        onChange={(key) => onChange({ ...pair, key })}
      />
      <TextField
        label="Value"
        errors={errors.filter((message) => !isAboutKey(message))}
        rows={1}
        spellCheck
        value={pair.value}
        onChange={(value) => onChange({ ...pair, value })}
      />
      <IconButton icon={X} label={`Remove ${pair.key || "pair"}`} onClick={onRemove} />
    </div>
  );
}
