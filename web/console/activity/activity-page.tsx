import { Page } from "../ui/page.js";

export default function ActivityPage() {
  return (
    <Page title="Activity">
      <p className="muted" />
    </Page>
  );
}
