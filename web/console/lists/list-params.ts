import { useEffect, useMemo } from "react";
import { useQueryParams } from "../ui/query-params.js";

export interface ChangeOptions {
  /** Adds no entry to the history, for example while the user types. */
  readonly replace?: boolean;
}

export type ChangeParams<Params> = (changed: Partial<Params>, options?: ChangeOptions) => void;

interface ListParamsOptions<Params> {
  /** Reads the query string and ignores invalid values. */
  read(query: URLSearchParams): Params;
  /** The values for the query string. Empty ones are left out. */
  write?(params: Params): Readonly<Record<string, string>>;
}

/** The filters of a list in the query string, so that the URL can be shared. */
export function useListParams<Params extends object>({
  read,
  write = (params) => params as Record<string, string>,
}: ListParamsOptions<Params>): readonly [Params, ChangeParams<Params>] {
  const [parameters, setParameters] = useQueryParams();
  const search = parameters.toString();
  const params = useMemo(() => read(new URLSearchParams(search)), [search, read]);
  const query = (values: Params) =>
    new URLSearchParams(Object.entries(write(values)).filter(([, value]) => value !== ""));
  const shown = query(params).toString();
  // Ignored values, which may be keys, do not stay in the URL.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new query string matters.
  useEffect(() => {
    if (shown !== search) {
      setParameters(new URLSearchParams(shown), { replace: true });
    }
  }, [shown, search]);
  function change(changed: Partial<Params>, options: ChangeOptions = {}): void {
    // Typed text is debounced: other filters may have changed since.
    const now = read(new URLSearchParams(location.search));
    setParameters(query({ ...now, ...changed }), options);
  }
  return [params, change];
}
