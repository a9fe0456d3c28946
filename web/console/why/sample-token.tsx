import { useState } from "react";
import { Field } from "../ui/fields.js";

/** Applies the transform of a decision to a sample value. */
export function SampleToken({ transform }: { readonly transform: string | undefined }) {
  const [plain, setPlain] = useState("4242 4242 4242 4242");
  const [mask, setMask] = useState("•••• 4242");
  const shown = transform === undefined ? "" : applyTransform(transform, plain, mask);
  return (
    <section className="card" aria-label="Sample">
      <h3>Sample</h3>
      <div className="why-pair">
        <Text label="Token value" value={plain} onChange={setPlain} />
        <Text label="Mask" value={mask} onChange={setMask} />
      </div>
      <p className="why-shown">
        {transform === undefined ? "denied" : transform} →{" "}
        <output>{shown === "" ? "nothing" : <code>{shown}</code>}</output>
      </p>
    </section>
  );
}

/** Without a mask, `mask` shows nothing. */
function applyTransform(transform: string, plain: string, mask: string): string {
  switch (transform) {
    case "reveal":
      return plain;
    case "mask":
      return mask;
    default:
      return "";
  }
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  onChange(value: string): void;
}

function Text({ label, value, onChange }: TextProps) {
  return (
    <Field label={label}>
      {(control) => (
        <input
          {...control}
          autoComplete="off"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
