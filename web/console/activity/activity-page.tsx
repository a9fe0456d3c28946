import { useAccess } from "../access/access.js";
import { NotAllowed } from "../ui/not-allowed.js";
import { Page } from "../ui/page.js";
import { Trail } from "./trail.js";
import "./activity.css";

/** What was done in the tenant, and denied, as it happens. */
export default function ActivityPage() {
  const { may } = useAccess();
  return may("event:read") ? (
    <Trail />
  ) : (
    <Page title="Activity">
      <NotAllowed permission="event:read" />
    </Page>
  );
}
