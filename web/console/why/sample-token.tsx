import { useState } from "react";
import { Field } from "../ui/fields.js";

/** How a decision shows the data of a token, tried on a value that can be changed. */
export function SampleToken({ transform }: { readonly transform: string | undefined }) {
  const [plain, setPlain] = useState("4242 4242 4242 4242");
  const [mask, setMask] = useState("•••• 4242");
  const shown = transform === undefined ? "" : shownOf(transform, plain, mask);
  return (
    <section className="card" aria-label="What is shown">
      <h3>What is shown</h3>
      <div className="why-pair">
        <Text label="Value of the token" value={plain} onChange={setPlain} />
        <Text label="Its mask" value={mask} onChange={setMask} />
      </div>
      <p className="why-shown">
        {transform === undefined ? "denied" : transform} →{" "}
        <output>{shown === "" ? "nothing" : <code>{shown}</code>}</output>
      </p>
    </section>
  );
}

/** What is left of a value. Where there is no mask nothing is shown in its place. */
function shownOf(transform: string, plain: string, mask: string): string {
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
