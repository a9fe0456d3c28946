import { createClient, type Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { type Batch, createBatch } from "./batch.js";

/** What begins the keys of queries for names. */
export const applicationNames = ["application-name"] as const;

/** How many applications a call can ask for. */
const most = 100;

const batches = new WeakMap<Transport, Batch<string>>();

/**
 * The name of an application: `null` where there is none with this id, or the
 * key may not know, and `undefined` until that is known. All that are asked for
 * at once share a call.
 */
export function useApplicationName(id: string | undefined): string | null | undefined {
  const transport = useTransport();
  const { may } = useAccess();
  const isAsked = id !== undefined && may("application:read");
  const { data } = useQuery({
    queryKey: [...applicationNames, id],
    queryFn: async () => (await batchOf(transport).get(id as string)) ?? null,
    enabled: isAsked,
    staleTime: 60_000,
  });
  return isAsked ? data : null;
}

function batchOf(transport: Transport): Batch<string> {
  const found = batches.get(transport) ?? createBatch(most, readNames(transport));
  batches.set(transport, found);
  return found;
}

function readNames(transport: Transport) {
  const client = createClient(ApplicationService, transport);
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const { data } = await client.listApplications({ id: [...ids], size: most });
    return new Map(data.map(({ id, name }) => [id, name]));
  };
}
