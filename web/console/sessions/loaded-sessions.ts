import type { ListSessionsResponse, Session } from "../../../gen/latchkey/v1/session_service_pb.js";

/** The loaded part of a list of sessions. */
export interface LoadedSessions {
  /** Newest first. */
  readonly sessions: readonly Session[];
  /** Where pages can start, newest first. */
  readonly cursors: readonly Cursor[];
  /** How many sessions to load. */
  readonly limit: number;
  readonly hasMore: boolean;
  readonly total: number | undefined;
}

interface Cursor {
  /** The id of the session before the page. */
  readonly after: string;
  readonly start: string;
}

export const pageSize = 50;

export const nothingLoaded: LoadedSessions = {
  sessions: [],
  cursors: [],
  limit: pageSize,
  hasMore: false,
  total: undefined,
};

interface Refresh {
  /** The indexes of the first and the last visible session. */
  readonly visible: readonly [first: number, last: number];
  fetchPage(start: string | undefined): Promise<ListSessionsResponse>;
}

/** After the first page. Bounds the calls if many sessions have appeared between the visible ones. */
const maxPages = 3;

/** Fetches the first page, the pages with visible sessions, and those missing to the limit. The others stay as they are. */
export async function refreshSessions(
  loaded: LoadedSessions,
  { visible: [first, last], fetchPage }: Refresh,
): Promise<LoadedSessions> {
  const { limit } = loaded;
  const lastVisible = loaded.sessions[last] ?? loaded.sessions.at(-1);
  const firstId = (loaded.sessions[first] ?? lastVisible)?.id ?? "";
  const newest = await fetchPage(undefined);
  let next = mergePage(loaded, undefined, newest);
  let pages = 0;

  async function fetchFrom(cursor: Cursor): Promise<void> {
    next = mergePage(next, cursor, await fetchPage(cursor.start));
    pages++;
  }

  let cursor = next.cursors.findLast(({ after }) => after > firstId) ?? next.cursors[0];
  while (pages < maxPages && cursor && lastVisible && cursor.after > lastVisible.id) {
    const { after } = cursor;
    await fetchFrom(cursor);
    cursor = next.cursors.find((other) => other.after < after);
  }
  let end = next.cursors.at(-1);
  while (pages < maxPages && end && next.hasMore && next.sessions.length < limit) {
    await fetchFrom(end);
    end = next.cursors.at(-1);
  }
  return { ...trimToLimit(next), total: newest.pagination?.totalItems };
}

/** Replaces the sessions in the range of a page. */
function mergePage(
  loaded: LoadedSessions,
  from: Cursor | undefined,
  { data, pagination }: ListSessionsResponse,
): LoadedSessions {
  const { sessions, cursors, hasMore } = loaded;
  const start = pagination?.next;
  // Without a next page, no older sessions exist.
  const end = start === undefined ? "" : (data.at(-1)?.id ?? from?.after ?? "");
  const isBefore = (id: string) => from !== undefined && id >= from.after;
  const older = sessions.filter(({ id }) => id < end);
  return {
    ...loaded,
    sessions: [...sessions.filter(({ id }) => isBefore(id)), ...data, ...older],
    cursors: [
      ...cursors.filter(({ after }) => isBefore(after)),
      ...(start === undefined ? [] : [{ after: end, start }]),
      ...cursors.filter(({ after }) => after < end),
    ],
    hasMore: older.length > 0 ? hasMore : start !== undefined,
  };
}

function trimToLimit(loaded: LoadedSessions): LoadedSessions {
  const sessions = loaded.sessions.slice(0, loaded.limit);
  const last = sessions.at(-1)?.id ?? "";
  return {
    ...loaded,
    sessions,
    cursors: loaded.cursors.filter(({ after }) => after >= last),
    hasMore: loaded.hasMore || sessions.length < loaded.sessions.length,
  };
}
