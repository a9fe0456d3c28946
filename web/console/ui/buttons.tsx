import { type ComponentProps, useState } from "react";

interface ButtonProps extends ComponentProps<"button"> {
  readonly tone?: "primary" | "plain" | "danger" | "quiet";
  /** What it does is under way: it can be pressed again when that is done. */
  readonly isBusy?: boolean;
}

export function Button({
  tone = "plain",
  isBusy = false,
  disabled,
  type = "button",
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      className="button"
      data-tone={tone}
      aria-busy={isBusy || undefined}
      disabled={disabled || isBusy}
    />
  );
}

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
