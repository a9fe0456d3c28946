import { Page } from "../ui/page.js";

export default function ApplicationPage({ id }: { readonly id: string }) {
  return (
    <Page title="Application">
      <p className="muted">{id}</p>
    </Page>
  );
}
