import { Component, type ReactNode } from "react";
import { Button } from "./button.js";
import { Page } from "./page.js";

interface MishapState {
  readonly hasFailed: boolean;
}

/** Stands in for a page that could not be shown, so that the rest stays. Give it another key for another page. */
export class Mishap extends Component<{ readonly children: ReactNode }, MishapState> {
  override state: MishapState = { hasFailed: false };

  static getDerivedStateFromError(): MishapState {
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
