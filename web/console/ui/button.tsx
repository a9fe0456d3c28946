import type { ComponentProps } from "react";

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
