import { Page } from "../ui/page.js";

export default function WhyPage() {
  return (
    <Page title="Why?">
      <p className="muted" />
    </Page>
  );
}
