import { useMemo } from "react";
import { useLocation } from "wouter";
import { useSearch } from "wouter/use-browser-location";

interface SetOptions {
  /** Adds no entry to the history. */
  readonly replace?: boolean;
}

type SetParams = (params: URLSearchParams, options?: SetOptions) => void;

/** The query string of the URL. wouter's own hook decodes it twice, which changes text such as `%2F`. */
export function useQueryParams(): readonly [URLSearchParams, SetParams] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const params = useMemo(() => new URLSearchParams(search), [search]);
  const set: SetParams = (next, options) => {
    const text = next.toString();
    navigate(text === "" ? path : `${path}?${text}`, options);
  };
  return [params, set];
}
