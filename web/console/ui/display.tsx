import type { ReactNode } from "react";
import picture from "../../common/latchkey.svg";

interface BadgeProps {
  readonly tone?: "plain" | "good" | "warning" | "danger" | "accent";
  readonly children: ReactNode;
}

export function Badge({ tone = "plain", children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone}>
      {children}
    </span>
  );
}

export function Chips({ names }: { readonly names: readonly string[] }) {
  return (
    <ul className="chips">
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
        </li>
      ))}
    </ul>
  );
}

export function DescriptionList({
  items,
}: {
  readonly items: readonly (readonly [name: string, value: ReactNode])[];
}) {
  return (
    <dl className="description-list">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Logo() {
  return (
    <span className="logo">
      <img src={picture} alt="" width="28" height="28" />
      Latchkey
    </span>
  );
}
