import { useState } from "react";
import { Button } from "../../ui/button.js";
import { CopyButton } from "../../ui/copy-button.js";

interface SecretValueProps {
  readonly label: string;
  readonly value: string;
  /** What it is for. */
  readonly use: string;
}

/** Keys begin with what they are. */
const kindLength = "lk_ses_".length;

/** A secret, which is covered until the person wants to see it. */
export function SecretValue({ label, value, use }: SecretValueProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <div className="secret-value">
      <h3>{label}</h3>
      <p className="hint">{use}</p>
      <code className="secret">
        {isShown ? value : `${value.slice(0, kindLength)}${"•".repeat(24)}`}
      </code>
      <div className="actions">
        <Button aria-pressed={isShown} onClick={() => setIsShown(!isShown)}>
          Show {label.toLowerCase()}
        </Button>
        <CopyButton text={value} label={`Copy ${label.toLowerCase()}`} />
      </div>
    </div>
  );
}
