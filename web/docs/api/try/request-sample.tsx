import { Check, Copy } from "lucide-react";
import { useState } from "react";
import type { SampleCall } from "../../../../src/contract/samples/call.js";
import { createSamples, type SampleLanguage } from "../../../../src/contract/samples/samples.js";
import { CodeView } from "./code-view.js";

/** The call as a program in the chosen language. The key is not part of it. */
export function RequestSample({ call }: { readonly call: SampleCall }) {
  const [language, setLanguage] = useState<SampleLanguage>("curl");
  const samples = createSamples(call);
  const code = samples.find((sample) => sample.language === language)?.code ?? "";
  return (
    <section className="card" aria-label="Request">
      <div className="card-title">
        <select
          aria-label="Language"
          value={language}
          onChange={({ target }) => setLanguage(target.value as SampleLanguage)}
        >
          {samples.map((sample) => (
            <option key={sample.language} value={sample.language}>
              {sample.label}
            </option>
          ))}
        </select>
        <CopyButton text={code} />
      </div>
      <CodeView code={code} language={language === "curl" ? "bash" : language} />
    </section>
  );
}

/** Without a secure context the browser has no clipboard. */
export function CopyButton({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState<string>();
  const isCopied = copied === text;
  return (
    "clipboard" in navigator && (
      <button
        type="button"
        className="icon-button"
        aria-label={isCopied ? "Copied" : "Copy"}
        onClick={async () => {
          await navigator.clipboard.writeText(text);
          setCopied(text);
        }}
      >
        {isCopied ? <Check /> : <Copy />}
      </button>
    )
  );
}
