import { Page } from "../ui/page.js";

export default function NewApplicationPage() {
  return (
    <Page title="New application">
      <p className="muted" />
    </Page>
  );
}
