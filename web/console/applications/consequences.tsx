import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { createQueryOptions, useTransport } from "@connectrpc/connect-query";
import { useQueries } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import {
  type ListSessionsResponse,
  SessionService,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { countOf, formatNumber } from "../../common/count.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { DescriptionList } from "../ui/display.js";
import { TimeAgo } from "../ui/time.js";

type Affected = Pick<Application, "id" | "name" | "type" | "lastUsedAt">;

/** What an action on applications would stop: their last use and their open sessions. */
export function Consequences({ applications }: { readonly applications: readonly Affected[] }) {
  const [only] = applications.length === 1 ? applications : [];
  return (
    <ConsequenceList
      items={[
        ...(only
          ? [["Last used", <TimeAgo key="used" at={only.lastUsedAt} />] as const]
          : lastUsesOf(applications)),
        ...useSessionCounts(applications),
      ]}
    />
  );
}

/** The last uses, for actions that leave the sessions alone. */
export function LastUses({ applications }: { readonly applications: readonly Affected[] }) {
  return <ConsequenceList items={lastUsesOf(applications)} />;
}

/** The open sessions of one application, of any type. */
export function SessionConsequences({ applicationId }: { readonly applicationId: string }) {
  const id = applicationId;
  const items = useSessionCounts(
    Object.keys(roles).map((type) => ({ id, type })),
    "it",
  );
  return <ConsequenceList items={items} />;
}

type Item = readonly [name: string, value: ReactNode];

function ConsequenceList({ items }: { readonly items: readonly Item[] }) {
  return items.length === 0 ? null : (
    <section className="consequences" aria-label="Consequences">
      <DescriptionList items={items} />
    </section>
  );
}

function lastUsesOf(applications: readonly Affected[]): Item[] {
  const used = applications.flatMap(({ name, lastUsedAt }) =>
    lastUsedAt ? [{ name, at: lastUsedAt }] : [],
  );
  const [latest] = used.toSorted((one, other) => timestampMs(other.at) - timestampMs(one.at));
  const neverUsed = applications.length - used.length;
  return [
    [
      "Last used",
      latest ? <LastUse key="used" {...latest} /> : <TimeAgo key="used" at={undefined} />,
    ],
    ...(latest && neverUsed > 0
      ? [["Never used", countOf(neverUsed, "application")] as const]
      : []),
  ];
}

function LastUse({ name, at }: { readonly name: string; readonly at: Timestamp }) {
  return (
    <>
      <TimeAgo at={at} />: {name}
    </>
  );
}

/** Only public applications open sessions, and only private ones authorize them. */
const roles = {
  public: { done: "opened", filter: "applicationId" },
  private: { done: "authorized", filter: "authorizedBy" },
} as const;

/** More applications are not counted one by one. */
const maxCalls = 20;

/** The service counts at most this many sessions. */
const maxCounted = 10_000;

/** The open sessions that end with the applications. A count that is missing never blocks the action. */
function useSessionCounts(
  applications: readonly Pick<Application, "id" | "type">[],
  who = applications.length > 1 ? "they" : "it",
): Item[] {
  const { may } = useSignedInKey();
  const transport = useTransport();
  const owners = applications.filter(({ type }) => type in roles);
  const isTotal = owners.length > maxCalls;
  const filters = isTotal
    ? [{}]
    : owners.map(({ id, type }) => ({ [roles[type as keyof typeof roles].filter]: id }));
  const counts = useQueries({
    queries: filters.map((filter) => ({
      ...createQueryOptions(
        SessionService.method.listSessions,
        { ...filter, size: 1, includeTotal: true },
        { transport },
      ),
      enabled: may("session:read"),
    })),
  });
  if (owners.length === 0) {
    return [];
  }
  if (!may("session:read")) {
    return [
      [
        "Open sessions",
        <Uncounted key="count">not counted: your key lacks session:read</Uncounted>,
      ],
    ];
  }
  if (isTotal) {
    return [["Open sessions", <Sum key="count" counts={counts} isOfTenant />]];
  }
  return Object.entries(roles).flatMap(([type, { done }]) => {
    const own = counts.filter((_, index) => owners[index]?.type === type);
    return own.length === 0
      ? []
      : [[`Open sessions that ${who} ${done}`, <Sum key={type} counts={own} />] as const];
  });
}

interface Count {
  readonly data: ListSessionsResponse | undefined;
  readonly isError: boolean;
}

interface SumProps {
  readonly counts: readonly Count[];
  /** Whether sessions of other applications are counted, too. */
  readonly isOfTenant?: boolean;
}

function Sum({ counts, isOfTenant = false }: SumProps) {
  if (counts.some(({ data, isError }) => isError && data === undefined)) {
    return <Uncounted>could not be counted</Uncounted>;
  }
  if (counts.some(({ data }) => data === undefined)) {
    return <Uncounted>counting…</Uncounted>;
  }
  const totals = counts.map(({ data }) => data?.pagination?.totalItems);
  const sum = totals.reduce<number>((all, total) => all + (total ?? maxCounted), 0);
  const shown = `${formatNumber(sum)}${totals.includes(undefined) ? "+" : ""}`;
  return <>{isOfTenant ? `at most ${shown} (all sessions of the tenant)` : shown}</>;
}

function Uncounted({ children }: { readonly children: string }) {
  return <span className="muted">{children}</span>;
}
