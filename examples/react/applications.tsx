import { createConnectQueryKey, useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { problemOf } from "latchkey/client";
import { ApplicationService } from "latchkey/proto";
import { useState } from "react";

const { listApplications, createApplication } = ApplicationService.method;

/** The applications of the tenant, newest first, and a form to create one. */
export function Applications() {
  const { data: list, error } = useQuery(listApplications, { size: 20 });
  return (
    <section>
      <h1>Applications</h1>
      {error && <p role="alert">{problemOf(error).detail}</p>}
      <ul>
        {list?.data.map(({ id, name, type, permissions }) => (
          <li key={id}>
            {name} ({type}): {permissions.join(", ")}
          </li>
        ))}
      </ul>
      <NewApplication />
    </section>
  );
}

function NewApplication() {
  const [name, setName] = useState("");
  const queries = useQueryClient();
  const creation = useMutation(createApplication, {
    // Refetch the list.
    onSuccess: () =>
      queries.invalidateQueries({
        queryKey: createConnectQueryKey({ schema: listApplications, cardinality: "finite" }),
      }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        creation.mutate({ name, type: "private", permissions: ["token:read"] });
      }}
    >
      <label>
        Name <input value={name} onChange={(event) => setName(event.target.value)} />
      </label>{" "}
      <button type="submit" disabled={creation.isPending}>
        Create
      </button>
      {creation.error && <p role="alert">{problemOf(creation.error).detail}</p>}
      {creation.data && (
        <p role="status">
          The key of {creation.data.name}, shown only once: <output>{creation.data.key}</output>
        </p>
      )}
    </form>
  );
}
