import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ListSessionsResponseSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import {
  type LoadedSessions,
  nothingLoaded,
  pageSize,
  refreshSessions,
} from "../../web/console/sessions/loaded-sessions.js";

/** A service whose cursors are ids, as the real ones contain them. */
function aService(count: number) {
  let ids = Array.from({ length: count }, (_, index) => idOf(count - index));
  let calls = 0;
  async function fetchPage(start: string | undefined) {
    calls++;
    const from = ids.filter((id) => start === undefined || id < start);
    const data = from.slice(0, pageSize).map((id) => ({ id }));
    const last = data.at(-1);
    const next = from.length > pageSize && last ? { next: last.id } : {};
    const total = start === undefined ? { totalItems: ids.length } : {};
    return create(ListSessionsResponseSchema, {
      data,
      pagination: { pageSize, ...next, ...total },
    });
  }
  return {
    open: (number: number) => {
      ids = [idOf(number), ...ids].toSorted().toReversed();
    },
    revoke: (isRevoked: (id: string) => boolean) => {
      ids = ids.filter((id) => !isRevoked(id));
    },
    ids: () => ids,
    calls: () => calls,
    refresh: (loaded: LoadedSessions, visible: readonly [number, number]) =>
      refreshSessions(loaded, { visible, fetchPage }),
  };
}

const idOf = (number: number) => String(number).padStart(6, "0");
const idsOf = ({ sessions }: LoadedSessions) => sessions.map(({ id }) => id);

async function loadAll(service: ReturnType<typeof aService>): Promise<LoadedSessions> {
  let loaded = await service.refresh(nothingLoaded, [0, 0]);
  while (loaded.hasMore) {
    const more = { ...loaded, limit: loaded.limit + pageSize };
    loaded = await service.refresh(more, [0, 0]);
  }
  return loaded;
}

describe("loaded pages of sessions", () => {
  it("load one after another until the end of the list", async () => {
    const service = aService(290);
    const first = await service.refresh(nothingLoaded, [0, 0]);
    expect(first).toMatchObject({ hasMore: true, total: 290 });
    expect(first.sessions).toHaveLength(pageSize);
    const loaded = await loadAll(service);
    expect(idsOf(loaded)).toEqual(service.ids());
    expect(loaded.total).toBe(290);
  });

  it.each([
    [0, 40],
    [120, 165],
    [260, 289],
  ])("show changes in the rows %d to %d with few calls", async (first, last) => {
    const service = aService(290);
    const loaded = await loadAll(service);
    const visible = idsOf(loaded).slice(first, last + 1);
    service.open(291);
    service.revoke((id) => Number(id) % 3 === 0);
    const before = service.calls();
    const next = await service.refresh(loaded, [first, last]);
    expect(service.calls() - before).toBeLessThanOrEqual(4);
    const inRange = (ids: readonly string[]) =>
      ids.filter((id) => id <= (visible[0] ?? "") && id >= (visible.at(-1) ?? ""));
    expect(inRange(idsOf(next))).toEqual(inRange(service.ids()));
    expect(idsOf(next)[0]).toBe(service.ids()[0]);
    expect(new Set(idsOf(next)).size).toBe(next.sessions.length);
    expect(next.total).toBe(service.ids().length);
  });

  it("keep their number while sessions open and close", async () => {
    const service = aService(290);
    const loaded = await service.refresh(nothingLoaded, [0, 0]);
    service.open(291);
    const longer = await service.refresh(loaded, [0, 49]);
    expect(idsOf(longer)).toEqual(service.ids().slice(0, pageSize));
    service.revoke((id) => Number(id) > 260);
    const shorter = await service.refresh(longer, [0, 49]);
    expect(idsOf(shorter)).toEqual(service.ids().slice(0, pageSize));
    expect(shorter.hasMore).toBe(true);
  });

  it("become empty with the list, wherever it is scrolled to", async () => {
    for (const visible of [
      [0, 40],
      [260, 289],
    ] as const) {
      const service = aService(290);
      const loaded = await loadAll(service);
      service.revoke(() => true);
      const next = await service.refresh(loaded, visible);
      expect(next).toMatchObject({ sessions: [], cursors: [], hasMore: false, total: 0 });
    }
  });
});
