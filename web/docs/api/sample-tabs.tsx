import type { Sample } from "../../../src/contract/samples/samples.js";
import { Code } from "./elements.js";

/** The same program in several languages. The script of the page turns them into tabs. */
export function SampleTabs({ samples }: { readonly samples: readonly Sample[] }) {
  return (
    <div className="tabs">
      {samples.map(({ language, label, code }) => (
        <div key={language} className="code">
          <p className="code-label">{label}</p>
          <Code code={code} language={language} />
        </div>
      ))}
    </div>
  );
}
