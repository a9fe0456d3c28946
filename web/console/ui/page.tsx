import { Component, type ReactNode, useEffect } from "react";
import { problemOf } from "../../../src/contract/problem-report.js";
import { Button } from "./buttons.js";

interface PageProps {
  readonly title: string;
  /** What stands beside the title: buttons, badges. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A page with its title, which the tab shows as well. */
export function Page({ title, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Latchkey`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-header">
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Says that a page is not for the key of the person, and what that would have to hold. */
export function NotAllowed({ permission }: { readonly permission: string }) {
  return (
    <p className="notice" data-tone="warning">
      <span>
        Your key may not do this: it does not hold <code>{permission}</code>.
      </span>
    </p>
  );
}

/** What the service said of a call that it refused, with the id to find it by. Nothing where nothing was thrown. */
export function Problem({ of: thrown }: { readonly of: unknown }) {
  if (thrown === undefined || thrown === null) {
    return null;
  }
  const { detail, errors, requestId } = problemOf(thrown);
  return (
    <div role="alert" className="notice" data-tone="danger">
      <p>{detail}</p>
      {Object.keys(errors).length > 0 && (
        <ul>
          {Object.entries(errors).map(([field, messages]) => (
            <li key={field}>
              <code>{field}</code> {messages.join(", ")}
            </li>
          ))}
        </ul>
      )}
      {requestId !== undefined && (
        <p className="hint">
          Request <code>{requestId}</code>
        </p>
      )}
    </div>
  );
}

interface ErrorBoundaryState {
  readonly hasFailed: boolean;
}

/** Stands in for a page that could not be shown, so that the rest stays. Give it another key for another page. */
export class ErrorBoundary extends Component<{ readonly children: ReactNode }, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { hasFailed: false };

  static getDerivedStateFromError(): ErrorBoundaryState {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) {
      return this.props.children;
    }
    return (
      <Page title="This page cannot be shown">
        <p role="alert" className="notice" data-tone="danger">
          Something went wrong, or the service was updated meanwhile and has other pages now.
        </p>
        <div className="actions">
          <Button tone="primary" onClick={() => location.reload()}>
            Load it anew
          </Button>
        </div>
      </Page>
    );
  }
}
