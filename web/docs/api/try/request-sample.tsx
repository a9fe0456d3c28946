import { Check, Copy } from "lucide-react";
import { useState } from "react";
import type { SampleCall } from "../../../../src/contract/samples/call.js";
import { createSamples, type Sample } from "../../../../src/contract/samples/samples.js";
import { copy } from "../../../common/clipboard.js";
import { storedLanguage } from "../../code-blocks.js";
import { Code } from "../elements.js";

/** The call as a program in the chosen language. The key is not part of it. */
export function RequestSample({ call }: { readonly call: SampleCall }) {
  const [chosen, setChosen] = useState(storedLanguage.read);
  const samples = createSamples(call);
  const { label, language, code } =
    samples.find(({ label }) => label === chosen) ?? (samples[0] as Sample);
  return (
    <section className="card" aria-label="Request">
      <div className="card-title">
        <select
          aria-label="Language"
          value={label}
          onChange={({ target }) => {
            setChosen(target.value);
            storedLanguage.write(target.value);
          }}
        >
          {samples.map(({ label }) => (
            <option key={label}>{label}</option>
          ))}
        </select>
        <CopyButton text={code} />
      </div>
      <div className="code">
        <Code code={code} language={language} />
      </div>
    </section>
  );
}

export function CopyButton({ text }: { readonly text: string }) {
  const [outcome, setOutcome] = useState<{ text: string; isCopied: boolean }>();
  const isCurrent = outcome?.text === text;
  const isCopied = isCurrent && outcome.isCopied;
  return (
    <>
      <span role="status" className={isCopied ? "visually-hidden" : "type"}>
        {isCurrent && (isCopied ? "Copied" : "Copying is blocked. Select the text.")}
      </span>
      <button
        type="button"
        className="icon-button"
        aria-label="Copy"
        onClick={async () => setOutcome({ text, isCopied: await copy(text) })}
      >
        {isCopied ? <Check /> : <Copy />}
      </button>
    </>
  );
}
