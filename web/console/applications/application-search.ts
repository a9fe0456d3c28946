import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { containsWords } from "../../common/words.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { useDebounced } from "../ui/hooks.js";

interface SearchOptions {
  readonly size: number;
  /** Finds only applications of this type. */
  readonly type?: string | undefined;
}

interface FoundApplications {
  readonly applications: readonly Application[];
  readonly isLoading: boolean;
  readonly error: unknown;
  /** Whether the search stopped before the end of the list. */
  readonly isIncomplete: boolean;
}

/** The newest applications that match a text. Until they are found, the previous ones with these words. */
export function useApplicationSearch(
  text: string,
  { size, type }: SearchOptions,
): FoundApplications {
  const { may } = useSignedInKey();
  const q = useDebounced(text.trim());
  const { data, error, isFetching, isPlaceholderData } = useQuery(
    ApplicationService.method.listApplications,
    { size, ...(q !== "" && { q }), ...(type && { type }) },
    // The text may be a key, which must not stay in the cache.
    { enabled: may("application:read"), placeholderData: keepPreviousData, gcTime: 0 },
  );
  const isStale = isPlaceholderData || q !== text.trim();
  const found = data?.data ?? [];
  return {
    applications: isStale ? found.filter(({ name }) => containsWords(name, text)) : found,
    isLoading: isStale || isFetching,
    error: isStale ? undefined : (error ?? undefined),
    isIncomplete: !isStale && (data?.pagination?.incomplete ?? false),
  };
}
