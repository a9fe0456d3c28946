import { Page } from "../ui/page.js";

export default function TrySessionPage() {
  return (
    <Page title="Try a session">
      <p className="muted" />
    </Page>
  );
}
