import { Page } from "../ui/page.js";

export default function SessionsPage() {
  return (
    <Page title="Sessions">
      <p className="muted" />
    </Page>
  );
}
