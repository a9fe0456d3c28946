import { createClient, type Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";

interface ApplicationNameProps {
  readonly id: string;
  /** What it is or was called, where that is known otherwise. */
  readonly knownAs?: string | undefined;
}

/** The name of an application, or its id where it has none any more. */
export function ApplicationName({ id, knownAs }: ApplicationNameProps) {
  const name = useApplicationName(id) ?? knownAs;
  return name === undefined ? <code title={id}>{shortId(id)}</code> : <b>{name}</b>;
}

/** The name of an application with the way to its page. */
export function ApplicationLink({ id, knownAs }: ApplicationNameProps) {
  const name = useApplicationName(id);
  return name ? (
    <Link href={`/applications/${id}`}>{name}</Link>
  ) : (
    <ApplicationName id={id} knownAs={knownAs} />
  );
}

/** Enough of an id to tell it from others: its end, as the beginning is a time. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}

/** What begins the keys of queries for names. */
export const applicationNames = ["application-name"] as const;

/** How many applications a call can ask for. */
const most = 100;

const loaders = new WeakMap<Transport, BatchLoader<string>>();

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
    queryFn: async () => (await loaderFor(transport).get(id as string)) ?? null,
    enabled: isAsked,
    staleTime: 60_000,
  });
  return isAsked ? data : null;
}

function loaderFor(transport: Transport): BatchLoader<string> {
  const found = loaders.get(transport) ?? createBatchLoader(most, readNames(transport));
  loaders.set(transport, found);
  return found;
}

function readNames(transport: Transport) {
  const client = createClient(ApplicationService, transport);
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
    const { data } = await client.listApplications({ id: [...ids], size: most });
    return new Map(data.map(({ id, name }) => [id, name]));
  };
}

/** Gets values by id, and asks for those together that are wanted at once. */
interface BatchLoader<Value> {
  get(id: string): Promise<Value | undefined>;
}

type Load<Value> = (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>;

/** Milliseconds in which what is asked for counts as asked for at once. */
const moment = 5;

function createBatchLoader<Value>(most: number, load: Load<Value>): BatchLoader<Value> {
  let wanted = new Set<string>();
  let loading: Promise<ReadonlyMap<string, Value>> | undefined;

  /** Loads what is wanted a moment later. */
  async function begin(): Promise<ReadonlyMap<string, Value>> {
    const ids = wanted;
    await new Promise((resolve) => setTimeout(resolve, moment));
    if (wanted === ids) {
      startNextBatch();
    }
    return load([...ids]);
  }

  function startNextBatch(): void {
    wanted = new Set();
    loading = undefined;
  }

  return {
    async get(id) {
      if (wanted.size >= most) {
        startNextBatch();
      }
      wanted.add(id);
      loading ??= begin();
      return (await loading).get(id);
    },
  };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text is an id. What is none may be a key, and must not come into the address of a page. */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}
