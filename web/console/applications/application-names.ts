import { createClient, type Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { pageSize } from "./application-query.js";

/** The query key prefix of names. */
export const applicationNames = ["application-name"] as const;

const loaders = new WeakMap<Transport, BatchLoader<string>>();

/**
 * The name of an application: `null` if it does not exist or the key may not
 * read it, `undefined` while loading. Concurrent lookups share one call.
 */
export function useApplicationName(id: string | undefined): string | null | undefined {
  const transport = useTransport();
  const { may } = useSignedInKey();
  const isEnabled = id !== undefined && may("application:read");
  const { data } = useQuery({
    queryKey: [...applicationNames, id],
    queryFn: async () => (await loaderFor(transport).get(id as string)) ?? null,
    enabled: isEnabled,
    staleTime: 60_000,
  });
  return isEnabled ? data : null;
}

function loaderFor(transport: Transport): BatchLoader<string> {
  const found = loaders.get(transport) ?? createBatchLoader(pageSize, readNames(transport));
  loaders.set(transport, found);
  return found;
}

function readNames(transport: Transport) {
  const client = createClient(ApplicationService, transport);
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const { data } = await client.listApplications({ id: [...ids], size: pageSize });
    return new Map(data.map(({ id, name }) => [id, name]));
  };
}

/** Combines concurrent lookups into one call. */
interface BatchLoader<Value> {
  get(id: string): Promise<Value | undefined>;
}

type Load<Value> = (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>;

/** Lookups within this time share a call. */
const batchDelayMs = 5;

function createBatchLoader<Value>(maxSize: number, load: Load<Value>): BatchLoader<Value> {
  let pending = new Set<string>();
  let loading: Promise<ReadonlyMap<string, Value>> | undefined;

  async function startBatch(): Promise<ReadonlyMap<string, Value>> {
    const ids = pending;
    await new Promise((resolve) => setTimeout(resolve, batchDelayMs));
    if (pending === ids) {
      startNextBatch();
    }
    return load([...ids]);
  }

  function startNextBatch(): void {
    pending = new Set();
    loading = undefined;
  }

  return {
    async get(id) {
      if (pending.size >= maxSize) {
        startNextBatch();
      }
      pending.add(id);
      loading ??= startBatch();
      return (await loading).get(id);
    },
  };
}
