import { CopyButton } from "./buttons.js";
import { Tabs } from "./tabs.js";

interface CodeBlockProps {
  readonly code: string;
  /** The label of the copy button. */
  readonly copyLabel?: string;
}

/** Code with a copy button. It scrolls inside its frame. */
export function CodeBlock({ code, copyLabel = "Copy code" }: CodeBlockProps) {
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard. */}
      <pre tabIndex={0}>{code}</pre>
      <CopyButton isCompact text={code} label={copyLabel} />
    </div>
  );
}

interface CodeTabsProps {
  /** What the samples do. */
  readonly label: string;
  readonly samples: readonly {
    readonly language: string;
    readonly label: string;
    readonly code: string;
  }[];
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
          content: <CodeBlock code={sample.code} copyLabel={`Copy ${sample.label}`} />,
        }))}
      />
    </div>
  );
}
