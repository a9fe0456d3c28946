import { useQueryClient } from "@tanstack/react-query";

/** Has all that is shown asked for anew, after something was changed. */
export function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries();
}
