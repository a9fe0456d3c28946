import { type RefObject, type SyntheticEvent, useEffect, useState } from "react";
import type { FieldErrors } from "../validation/validate.js";

interface ToldErrors {
  /** What is wrong with what the person has been at. */
  readonly errors: FieldErrors;
  /** Called when something happens in a field. */
  visit(event: SyntheticEvent): void;
}

/**
 * Keeps back what is wrong with fields of a new rule that the person has not
 * come to yet, until the form is sent.
 */
export function useToldErrors(
  all: FieldErrors,
  isNew: boolean,
  inForm: RefObject<HTMLElement | null>,
): ToldErrors {
  const [visited, setVisited] = useState<readonly string[]>([]);
  const [isAllTold, setIsAllTold] = useState(!isNew);

  useEffect(() => {
    const form = inForm.current?.closest("form");
    const tellAll = () => setIsAllTold(true);
    form?.addEventListener("submit", tellAll);
    return () => form?.removeEventListener("submit", tellAll);
  }, [inForm]);

  // What stands in a list of names was entered.
  const isTold = (field: string) => field === "" || field.endsWith("]") || visited.includes(field);
  const told = Object.entries(all).filter(([field]) => isAllTold || isTold(field));
  return {
    errors: Object.fromEntries(told),
    visit({ type, target }) {
      const field = (target as Element).closest<HTMLElement>("[data-field]")?.dataset.field;
      // A name that is being written is not in its list yet.
      const isDraft = type === "change" && field === "permissions";
      if (field !== undefined && !isDraft && !visited.includes(field)) {
        setVisited([...visited, field]);
      }
    },
  };
}
