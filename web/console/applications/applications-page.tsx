import { AppWindow, CalendarClock, Plus, SearchX, Sprout } from "lucide-react";
import { useMemo, useState } from "react";
import { expiringDays } from "../../../src/contract/defaults.js";
import { countOf, formatNumber } from "../../common/count.js";
import { ListSummary, LoadMore, SearchProgress } from "../lists/list-summary.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { EmptyState } from "../ui/display.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { Tabs } from "../ui/tabs.js";
import { ApplicationFilters } from "./application-filters.js";
import {
  chosenFilters,
  type ListParams,
  mayContainAnyKey,
  noFilters,
  paramsForView,
  toListRequest,
  useApplicationParams,
  type View,
  views,
} from "./application-query.js";
import { type ApplicationRows, useApplicationRows } from "./application-rows.js";
import { ApplicationTable } from "./application-table.js";

/** The applications, with search, filters and bulk actions. */
export default function ApplicationsPage() {
  const { may } = useSignedInKey();
  return (
    <Page title="Applications" actions={may("application:create") && <NewLink />}>
      {may("application:read") ? <Views /> : <NotAllowed permission="application:read" />}
    </Page>
  );
}

function NewLink() {
  return (
    <ButtonLink tone="primary" icon={Plus} href="/applications/new">
      New application
    </ButtonLink>
  );
}

const viewLabels: Readonly<Record<View, string>> = {
  all: "All",
  expiring: "Expiring soon",
  unused: "Unused",
};

function Views() {
  const [inUrl, change] = useApplicationParams();
  /** A search text that may be a key. It must not be in the URL. */
  const [secret, setSecret] = useState("");
  const params = useMemo(() => (inUrl.q === "" ? { ...inUrl, q: secret } : inUrl), [inUrl, secret]);

  function search(text: string): void {
    const isSecret = mayContainAnyKey(text);
    setSecret(isSecret ? text : "");
    change({ q: isSecret ? "" : text }, { replace: true });
  }

  function clear(): void {
    setSecret("");
    change(noFilters);
  }

  return (
    <Tabs
      label="Views"
      value={params.view}
      onChange={(view) => change(paramsForView(view as View))}
      tabs={views.map((id) => ({
        id,
        label: viewLabels[id],
        content: (
          <>
            <ApplicationFilters
              params={params}
              onSearch={search}
              onChange={change}
              onClear={clear}
            />
            <Applications params={params} onChange={change} onClear={clear} />
          </>
        ),
      }))}
    />
  );
}

interface ApplicationsProps {
  readonly params: ListParams;
  onChange(changed: Partial<ListParams>): void;
  onClear(): void;
}

function Applications({ params, onChange, onClear }: ApplicationsProps) {
  const request = useMemo(() => toListRequest(params), [params]);
  const rows = useApplicationRows(request);
  const isFiltered = chosenFilters(params).length > 0;
  return (
    <>
      <ListSummary text={summaryOf(rows, params, isFiltered)}>
        {rows.search && (
          <SearchProgress search={rows.search} found={rows.count ?? 0} noun="application" />
        )}
      </ListSummary>
      <Problem error={rows.error} />
      <ApplicationTable
        rows={rows}
        params={params}
        onChange={onChange}
        empty={
          isFiltered ? (
            <NoMatches rows={rows} hasSearch={params.q !== ""} onClear={onClear} />
          ) : (
            <EmptyView params={params} />
          )
        }
      />
      {rows.search && !rows.search.isSearching && !rows.search.isStopped && (
        <LoadMore
          query={{
            hasNextPage: true,
            isFetchingNextPage: rows.isLoading,
            fetchNextPage: rows.search.findMore,
          }}
        />
      )}
    </>
  );
}

function summaryOf(
  { count, search }: ApplicationRows,
  { view, order, expires, unused }: ListParams,
  isFiltered: boolean,
) {
  if (count === undefined) {
    return undefined;
  }
  if (search) {
    // The progress says how many were found.
    return search.isSearching || search.isStopped
      ? undefined
      : `${formatNumber(count)} found so far`;
  }
  const applications = countOf(count, "application");
  if (isFiltered) {
    return `${applications} found`;
  }
  if (view === "expiring") {
    return `${applications} ${count === 1 ? "expires" : "expire"} within ${expires} days`;
  }
  if (view === "unused") {
    return unused === "never"
      ? `${applications} never used`
      : `${applications} unused for ${unused} days`;
  }
  return order === "expires_at" ? `${applications} with an expiry` : applications;
}

interface NoMatchesProps {
  readonly rows: ApplicationRows;
  readonly hasSearch: boolean;
  onClear(): void;
}

function NoMatches({ rows, hasSearch, onClear }: NoMatchesProps) {
  return (
    <EmptyState
      icon={SearchX}
      title={rows.search ? "No applications found so far" : "No applications match"}
      action={<Button onClick={onClear}>Clear filters</Button>}
    >
      {hasSearch
        ? "Search for words of the name, the description or the external ID, or for a whole ID or key."
        : "No application has all of these filters."}
    </EmptyState>
  );
}

function EmptyView({ params: { view, unused } }: { readonly params: ListParams }) {
  switch (view) {
    case "all":
      return (
        <EmptyState icon={AppWindow} title="No applications yet" action={<NewLink />}>
          An application has keys and permissions. Create one for each service or website that calls
          your API.
        </EmptyState>
      );
    case "expiring":
      return (
        <EmptyState icon={CalendarClock} title={`Nothing expires in the next ${expiringDays} days`}>
          Applications with an expiry appear here {expiringDays} days before they stop working.
          Extend the expiry or create a replacement in time.
        </EmptyState>
      );
    case "unused":
      return (
        <EmptyState
          icon={Sprout}
          title={
            unused === "never" ? "Every application was used" : "Every application is in use or new"
          }
        >
          {unused === "never"
            ? "Applications that were never used appear here."
            : `Applications that were not used for ${unused} days appear here.`}{" "}
          Disable them, then delete them when nobody misses them.
        </EmptyState>
      );
  }
}
