import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import picture from "../../common/latchkey.svg";
import { CopyButton } from "./buttons.js";

interface BadgeProps {
  readonly tone?: "plain" | "good" | "warning" | "danger" | "accent";
  /** Adds a dot, for states. */
  readonly hasDot?: boolean;
  readonly children: ReactNode;
}

/** A type or a state in one word. */
export function Badge({ tone = "plain", hasDot = false, children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone} data-dot={hasDot || undefined}>
      {children}
    </span>
  );
}

interface CardProps {
  /** The accessible name of the section. */
  readonly label: string;
  /** Whether the label is visible as a heading. */
  readonly hasHeading?: boolean;
  /** Buttons beside the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A named section with a border. */
export function Card({ label, hasHeading = true, actions, children }: CardProps) {
  return (
    <section className="card" aria-label={label}>
      {(hasHeading || actions) && (
        <header className="card-header">
          {hasHeading && <h2>{label}</h2>}
          {actions && <div className="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

interface NoticeProps {
  readonly tone: "good" | "warning" | "danger";
  /** `alert` interrupts a screen reader, `status` waits. */
  readonly role?: "alert" | "status";
  readonly children: ReactNode;
}

/** A message about a part of the page. */
export function Notice({ tone, role, children }: NoticeProps) {
  return (
    <div role={role} className="notice" data-tone={tone}>
      {children}
    </div>
  );
}

interface EmptyStateProps {
  readonly icon: LucideIcon;
  readonly title: string;
  /** Describes the items that the list would show, and how to create them. */
  readonly children?: ReactNode;
  /** A button or a link that leads on. */
  readonly action?: ReactNode;
}

/** Shown instead of an empty list. It teaches what belongs there and how to start. */
export function EmptyState({ icon: Icon, title, children, action }: EmptyStateProps) {
  return (
    <div className="empty-state">
      <span className="empty-state-icon">
        <Icon size={20} aria-hidden />
      </span>
      <p className="empty-state-title">{title}</p>
      {children !== undefined && <div className="muted">{children}</div>}
      {action !== undefined && <div className="actions">{action}</div>}
    </div>
  );
}

interface SkeletonProps {
  /** The number of lines. */
  readonly lines?: number;
  /** Names the content that loads, for screen readers. */
  readonly label?: string;
}

/** Gray lines in the place of content that loads. */
export function Skeleton({ lines = 3, label = "Loading" }: SkeletonProps) {
  return (
    <div className="skeleton" role="status">
      <span className="visually-hidden">{label}…</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike.
        <span key={line} className="skeleton-line" />
      ))}
    </div>
  );
}

/** A short value, such as an id, with a copy button. */
export function Copyable({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <span className="copyable">
      <code>{text}</code>
      <CopyButton isCompact text={text} label={label} />
    </span>
  );
}

/** The names, or that any is allowed. */
export function ChipsOrAny({ names }: { readonly names: readonly string[] }) {
  return names.length === 0 ? <span className="muted">any</span> : <Chips names={names} />;
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

/** Keys of the keyboard, such as `["g", "a"]`. */
export function Kbd({ keys }: { readonly keys: readonly string[] }) {
  return (
    <span className="keys">
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  );
}

interface DescriptionListProps {
  readonly items: readonly (readonly [name: string, value: ReactNode])[];
}

/** Names and values. */
export function DescriptionList({ items }: DescriptionListProps) {
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
      <img src={picture} alt="" width="24" height="24" />
      Latchkey
    </span>
  );
}
