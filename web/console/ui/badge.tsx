import type { ReactNode } from "react";

interface BadgeProps {
  readonly tone?: "plain" | "good" | "warning" | "danger" | "accent";
  readonly children: ReactNode;
}

/** A word or two on the state of something. */
export function Badge({ tone = "plain", children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone}>
      {children}
    </span>
  );
}
