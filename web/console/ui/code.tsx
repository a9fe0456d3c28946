import { Suspense } from "react";
import { CopyButton } from "./buttons.js";
import { lazyComponent } from "./lazy.js";
import { ErrorBoundary } from "./page.js";
import { Tabs } from "./tabs.js";

const HighlightedCode = lazyComponent(() => import("../../common/highlighted-code.js"));

interface CodeBlockProps {
  readonly code: string;
  readonly language: string;
  /** The label of the copy button. */
  readonly copyLabel?: string;
}

/** Code with a copy button. It scrolls inside its frame. */
export function CodeBlock({ code, language, copyLabel = "Copy code" }: CodeBlockProps) {
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <ErrorBoundary fallback={code}>
          <Suspense fallback={code}>
            <HighlightedCode code={code} language={language} />
          </Suspense>
        </ErrorBoundary>
      </pre>
      <CopyButton isCompact text={code} label={copyLabel} />
    </div>
  );
}

interface CodeTabsProps {
  /** The accessible name of the tabs. */
  readonly label: string;
  readonly samples: readonly (Pick<CodeBlockProps, "code" | "language"> & {
    readonly label: string;
  })[];
}

/** The same sample in several languages. */
export function CodeTabs({ label, samples }: CodeTabsProps) {
  return (
    <div className="code-tabs">
      <Tabs
        label={label}
        tabs={samples.map((sample) => ({
          id: sample.language,
          label: sample.label,
          content: <CodeBlock {...sample} copyLabel={`Copy ${sample.label}`} />,
        }))}
      />
    </div>
  );
}
