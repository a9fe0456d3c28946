import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";

/** Has all that is shown asked for anew, after something was changed. */
export function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => {
    // A list of many pages, which nobody sees now, starts again from its first one.
    queries.removeQueries({
      queryKey: createConnectQueryKey({
        schema: ApplicationService.method.listApplications,
        cardinality: "infinite",
      }),
      type: "inactive",
    });
    void queries.invalidateQueries();
  };
}
