import { CreateApplicationRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../../src/contract/fields.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";

const types = choicesOf(CreateApplicationRequestSchema.field.type) as readonly ApplicationType[];

const uses: Readonly<Record<ApplicationType, string>> = {
  private: "For backends that can keep a secret. It can authorize sessions.",
  public: "For browsers and mobile apps, where everybody can read it. It can open sessions.",
  management: "For administration.",
};

interface TypeFieldProps {
  readonly type: ApplicationType;
  onChange(type: ApplicationType): void;
}

/** What the key is for. */
export function TypeField({ type, onChange }: TypeFieldProps) {
  return (
    <fieldset className="options">
      <legend>Type</legend>
      {types.map((choice) => (
        <label key={choice} className="check type-choice">
          <input
            type="radio"
            name="type"
            checked={type === choice}
            onChange={() => onChange(choice)}
          />
          <span>
            {choice} <span className="hint">{uses[choice]}</span>
          </span>
        </label>
      ))}
      <p className="hint">It cannot be changed later.</p>
    </fieldset>
  );
}
