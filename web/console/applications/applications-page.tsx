import { Page } from "../ui/page.js";

export default function ApplicationsPage() {
  return (
    <Page title="Applications">
      <p className="muted" />
    </Page>
  );
}
