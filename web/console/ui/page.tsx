import { Component, type ReactNode, useEffect } from "react";
import { problemOf } from "../../../src/contract/problem-report.js";
import { describeErrors } from "../validation/field-errors.js";
import { Button } from "./buttons.js";

interface PageProps {
  readonly title: string;
  /** Buttons and badges beside the title. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A page that also sets the document title. */
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

export function NotAllowed({ permission }: { readonly permission: string }) {
  return (
    <p className="notice" data-tone="warning">
      <span>
        Your key needs the permission <code>{permission}</code>. Sign in with a key that has it.
      </span>
    </p>
  );
}

/** The error of a call with its request id. Fields are named by their labels. */
export function Problem({ error }: { readonly error: unknown }) {
  if (error === undefined || error === null) {
    return null;
  }
  const { detail, errors, requestId } = problemOf(error);
  const fields = Object.entries(errors);
  return (
    <div role="alert" className="notice" data-tone="danger">
      {fields.length === 0 ? (
        <p>{detail}</p>
      ) : (
        <ul>
          {fields.map(([field, messages]) => (
            <li key={field}>{describeErrors(field, messages)}</li>
          ))}
        </ul>
      )}
      {requestId !== undefined && (
        <p className="hint">
          Request id <code>{requestId}</code>
        </p>
      )}
    </div>
  );
}

interface ErrorBoundaryState {
  readonly hasFailed: boolean;
}

/** Catches rendering errors of a page. Use a different key for each page. */
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
          Something went wrong, or the service was updated. Reload the page.
        </p>
        <div className="actions">
          <Button tone="primary" onClick={() => location.reload()}>
            Reload
          </Button>
        </div>
      </Page>
    );
  }
}
