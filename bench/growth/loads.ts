import { loadBuilt } from "../built.js";
import type { Load } from "../load/load.js";
import { get, readByKey, type Target } from "../requests/scenarios.js";
import { privateApplication } from "../seed.js";

/** What is asked of a store of any size. */
export const paths = ["read", "firstPage", "lastPage", "update"] as const;
export type Path = (typeof paths)[number];

export const pageSize = 20;

/** Sorts after every id. */
const afterAll = "ffffffff-ffff-7fff-bfff-ffffffffffff";

const { name, permissions, rules } = JSON.parse(privateApplication);
const update = JSON.stringify({ name, permissions, rules });

export async function loadsOf(target: Target): Promise<Record<Path, Load>> {
  const { encodeCursor } = await loadBuilt<typeof import("../../src/cursor.js")>("cursor.js");
  const { keys } = target;
  const pageAfter = (id: string) => {
    const path = `/applications?size=${pageSize}&start=${encodeCursor(keys.tenantId, { after: id }, "newest")}`;
    return { ...get(path, target), requests: [{ key: keys.management }] };
  };
  return {
    read: readByKey.load(target, []),
    firstPage: pageAfter(afterAll),
    // As full as the first one: behind it come only those that the store began with.
    lastPage: pageAfter(keys.oldest[pageSize] as string),
    update: {
      ...get("/applications", target),
      verb: "PUT",
      requests: keys.private.map(({ id }) => ({
        key: keys.management,
        path: `/applications/${id}`,
        body: update,
      })),
    },
  };
}
