import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { Badge } from "../ui/badge.js";
import { Field } from "../ui/field.js";
import { Problem } from "../ui/problem.js";
import { useSettled } from "../ui/use-settled.js";

interface ApplicationSearchProps {
  readonly chosenId: string | undefined;
  onChoose(id: string): void;
}

const mostShown = 8;

/** Finds an application by the beginning of its name. */
export function ApplicationSearch({ chosenId, onChoose }: ApplicationSearchProps) {
  const [name, setName] = useState("");
  const namePrefix = useSettled(name);
  const { data, error } = useQuery(
    ApplicationService.method.listApplications,
    { size: mostShown, ...(namePrefix !== "" && { namePrefix }) },
    { placeholderData: keepPreviousData },
  );
  return (
    <>
      <Field label="Application" hint="The beginning of its name.">
        {(control) => (
          <input
            {...control}
            type="search"
            autoComplete="off"
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      <Problem of={error} />
      <ul className="why-found" aria-label="Applications found">
        {data?.data.map(({ id, name, type }) => (
          <li key={id}>
            <button type="button" aria-pressed={id === chosenId} onClick={() => onChoose(id)}>
              <span>{name}</span>
              <Badge>{type}</Badge>
            </button>
          </li>
        ))}
      </ul>
      {data?.data.length === 0 && <p className="muted">No application is called so.</p>}
    </>
  );
}
