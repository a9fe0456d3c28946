import { countOf } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import type { ContinuedSearch } from "./continued-search.js";

export interface SearchProgressProps {
  readonly search: ContinuedSearch;
  readonly found: number;
  readonly noun: string;
}

/** How far a search is that continues by itself, with a button to stop it or to go on. */
export default function SearchProgress({ search, found, noun }: SearchProgressProps) {
  const count = countOf(found, noun);
  return search.isSearching ? (
    <span className="actions">
      <span role="status" className="hint">
        Searching… {count} found so far
      </span>
      <Button size="small" onClick={search.stop}>
        Stop
      </Button>
    </span>
  ) : (
    <span className="actions">
      <span role="status" className="hint">
        Stopped before the end, {count} found so far
      </span>
      <Button size="small" onClick={search.findMore}>
        Continue the search
      </Button>
    </span>
  );
}
