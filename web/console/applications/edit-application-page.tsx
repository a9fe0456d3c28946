import { useQuery } from "@connectrpc/connect-query";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { NotAllowed } from "../ui/not-allowed.js";
import { Page } from "../ui/page.js";
import { Problem } from "../ui/problem.js";
import { EditApplication } from "./edit-application.js";

interface EditApplicationPageProps {
  readonly id: string;
}

export default function EditApplicationPage({ id }: EditApplicationPageProps) {
  const { may } = useAccess();
  const permission = ["application:read", "application:update"].find((name) => !may(name));
  return (
    <Page title="Edit application">
      {permission === undefined ? (
        <LoadedApplication id={id} />
      ) : (
        <NotAllowed permission={permission} />
      )}
    </Page>
  );
}

function LoadedApplication({ id }: EditApplicationPageProps) {
  const { data, error, isFetchedAfterMount, refetch } = useQuery(
    ApplicationService.method.getApplication,
    { id },
    { refetchOnMount: "always" },
  );
  // What was seen on an earlier page may be of long ago.
  if (isFetchedAfterMount && data) {
    return <EditApplication saved={data} onOutdated={refetch} />;
  }
  return error ? <Problem of={error} /> : <p className="muted">Loading…</p>;
}
