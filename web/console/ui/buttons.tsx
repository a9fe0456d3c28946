import { type ComponentProps, useState } from "react";

interface ButtonProps extends ComponentProps<"button"> {
  readonly tone?: "primary" | "plain" | "danger" | "quiet";
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

/** Copies text to the clipboard and confirms it. */
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
      // The clipboard needs a secure context: HTTPS or localhost.
      setOutcome("failed");
    }
    setTimeout(() => setOutcome(undefined), 3_000);
  }

  return (
    <>
      <Button onClick={copy}>{outcome === "copied" ? "Copied ✓" : label}</Button>
      <span role="status" className={outcome === "failed" ? "hint" : "visually-hidden"}>
        {outcome === "copied" && "Copied"}
        {outcome === "failed" && "Copying is blocked by the browser. Select the text and copy it."}
      </span>
    </>
  );
}
