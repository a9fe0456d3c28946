import { useState } from "react";
import { Button } from "./button.js";

/** Copies a text, and says that it did. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  readonly text: string;
  readonly label?: string;
}) {
  const [outcome, setOutcome] = useState<"copied" | "failed">();

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome("copied");
    } catch {
      // Browsers let pages copy only where they came by TLS or from this machine.
      setOutcome("failed");
    }
    setTimeout(() => setOutcome(undefined), 3_000);
  }

  return (
    <>
      <Button onClick={copy}>{outcome === "copied" ? "Copied ✓" : label}</Button>
      <span role="status" className={outcome === "failed" ? "hint" : "unseen"}>
        {outcome === "copied" && "Copied"}
        {outcome === "failed" &&
          "Your browser does not let this page copy: select the text and copy it."}
      </span>
    </>
  );
}
