import type { SessionRecord, SessionWithApplication } from "../port/records.js";
import type { SessionFilter, SessionStore } from "../port/sessions.js";
import { createPageBudget } from "../port/store.js";
import { resolveAll } from "./live-records.js";
import { maxScanned, type RecordReader, scanAll } from "./record-reader.js";

/** Lists and counts sessions. Their liveness is checked record by record. */
export function createSessionLists(reader: RecordReader): Pick<SessionStore, "list" | "count"> {
  /** Reads the sessions that an index finds for a filter, newest first. Those that do not match or are not live are undefined. */
  async function* readAll(
    filter: SessionFilter,
    { after, limit }: { readonly after?: string | undefined; readonly limit?: number },
    signal: AbortSignal | undefined,
  ): AsyncGenerator<(SessionWithApplication | undefined)[], void> {
    const from = after === undefined ? {} : { after: { after } };
    const scan = { ...rangeOf(filter), isBackward: true, ...from, ...(limit && { limit }) };
    for await (const batch of scanAll(reader, scan, ({ id }) => ({ after: id }), { signal })) {
      const matches = batch.map((one) => (matchesFilter(one, filter) ? one : undefined));
      yield await resolveAll(reader, "session", matches);
    }
  }

  return {
    async list({ size, after, ...filter }, signal) {
      const items: SessionWithApplication[] = [];
      const budget = createPageBudget();
      const limit = Math.min(size + 1, maxScanned);
      for await (const batch of readAll(filter, { after, limit }, signal)) {
        for (const found of batch.filter((one) => one !== undefined)) {
          if (items.length === size || !budget.tryAdd(reader.sizeOf(found.session))) {
            return { items, more: true };
          }
          items.push(found);
        }
      }
      return { items, more: false };
    },

    async count(filter, limit, signal) {
      let open = 0;
      let read = 0;
      for await (const batch of readAll(filter, {}, signal)) {
        const counted = batch.slice(0, limit - read);
        open += counted.filter((found) => found !== undefined).length;
        read += batch.length;
        if (read > limit) {
          return { open, isComplete: false };
        }
      }
      return { open, isComplete: true };
    },
  };
}

function rangeOf({ tenantId, applicationId, authorizedBy }: SessionFilter) {
  const kind = "session";
  if (applicationId !== undefined) {
    return { kind, index: "application", tenantId, value: applicationId } as const;
  }
  return authorizedBy === undefined
    ? ({ kind, index: "newest", tenantId } as const)
    : ({ kind, index: "authorizer", tenantId, value: authorizedBy } as const);
}

function matchesFilter(session: SessionRecord, filter: SessionFilter): boolean {
  const { applicationId, authorizedBy, authorized } = filter;
  const isAuthorized = session.authorizedAt !== undefined;
  return (
    (applicationId ?? session.applicationId) === session.applicationId &&
    (authorizedBy ?? session.authorizedBy) === session.authorizedBy &&
    (authorized ?? isAuthorized) === isAuthorized
  );
}
