import { ChevronRight, RotateCw } from "lucide-react";
import { Component, type ReactNode, useEffect } from "react";
import { Link } from "wouter";
import { problemOf } from "../../../src/contract/problem-report.js";
import { describeErrors } from "../validation/field-errors.js";
import { Button } from "./buttons.js";
import { Notice, Skeleton } from "./display.js";

interface Crumb {
  readonly label: string;
  readonly href: string;
}

interface PageProps {
  readonly title: string;
  /** The pages above this one, from the top. */
  readonly parents?: readonly Crumb[];
  /** Badges beside the title. */
  readonly badges?: ReactNode;
  /** One or two sentences about the page. */
  readonly description?: ReactNode;
  /** Buttons at the end of the title line. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A page with breadcrumbs and header. It also sets the document title. */
export function Page({ title, parents, badges, description, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Latchkey`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-header">
        {parents && <Breadcrumbs parents={parents} current={title} />}
        <div className="page-title">
          <h1>{title}</h1>
          {badges}
        </div>
        {actions && <div className="actions">{actions}</div>}
        {description && <div className="page-description">{description}</div>}
      </header>
      {children}
    </div>
  );
}

interface BreadcrumbsProps {
  readonly parents: readonly Crumb[];
  readonly current: string;
}

function Breadcrumbs({ parents, current }: BreadcrumbsProps) {
  return (
    <nav className="breadcrumbs" aria-label="Breadcrumbs">
      <ol>
        {parents.map(({ label, href }) => (
          <li key={href}>
            <Link href={href}>{label}</Link>
            <ChevronRight size={14} aria-hidden />
          </li>
        ))}
        <li aria-current="page">{current}</li>
      </ol>
    </nav>
  );
}

/** The place of a page whose script loads. */
export function PageSkeleton() {
  return (
    <div className="page">
      <div className="page-skeleton">
        <Skeleton lines={1} label="Loading the page" />
      </div>
      <div className="card">
        <Skeleton lines={6} />
      </div>
    </div>
  );
}

export function NotAllowed({ permission }: { readonly permission: string }) {
  return (
    <Notice tone="warning">
      <p>
        Your key needs the permission <code>{permission}</code>. Sign in with a key that has it.
      </p>
    </Notice>
  );
}

interface ProblemProps {
  readonly error: unknown;
  /** Adds a button that tries again. */
  readonly onRetry?: () => void;
}

/** The error of a call with its request id. Fields are named by their labels. */
export function Problem({ error, onRetry }: ProblemProps) {
  if (error === undefined || error === null) {
    return null;
  }
  const { detail, errors, requestId } = problemOf(error);
  const lines = Object.entries(errors).map(([field, messages]) => describeErrors(field, messages));
  return (
    <Notice tone="danger" role="alert">
      {lines.length < 2 ? (
        <p>{lines[0] ?? detail}</p>
      ) : (
        <ul>
          {lines.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {requestId !== undefined && (
        <p className="hint">
          Request ID <code>{requestId}</code>
        </p>
      )}
      {onRetry && (
        <div>
          <Button size="small" icon={RotateCw} onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </Notice>
  );
}

interface ErrorBoundaryProps {
  readonly children: ReactNode;
  /** Shown instead of a part that failed. Without it, a page that says so. */
  readonly fallback?: ReactNode;
}

interface ErrorBoundaryState {
  readonly hasFailed: boolean;
}

/** Catches rendering errors and scripts that cannot be loaded. Use a different key for each page. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { hasFailed: false };

  static getDerivedStateFromError(): ErrorBoundaryState {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    const { children, fallback } = this.props;
    if (!this.state.hasFailed) {
      return children;
    }
    if (fallback !== undefined) {
      return fallback;
    }
    return (
      <Page title="This page cannot be shown">
        <Notice tone="danger" role="alert">
          <p>Something went wrong, or the service was updated. Reload the page.</p>
        </Notice>
        <div className="actions">
          <Button tone="primary" icon={RotateCw} onClick={() => location.reload()}>
            Reload
          </Button>
        </div>
      </Page>
    );
  }
}
