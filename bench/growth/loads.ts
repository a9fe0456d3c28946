import type { Load } from "../load/load.js";
import { get, readByKey, type Target } from "../requests/scenarios.js";
import { privateApplication } from "../seed.js";

/** What is asked of a store of any size. */
export const paths = ["read", "firstPage", "lastPage", "update"] as const;
export type Path = (typeof paths)[number];

export const pageSize = 20;

const { name, permissions, rules } = JSON.parse(privateApplication);
const update = JSON.stringify({ name, permissions, rules });

export async function loadsOf(target: Target): Promise<Record<Path, Load>> {
  const { keys } = target;
  const first = await pageOfOne(1, target);
  const beforeLast = await pageOfOne(first.total_items - pageSize, target);
  const pageAt = (start: string) => ({
    ...get(`/applications?size=${pageSize}&start=${start}`, target),
    requests: [{ key: keys.management }],
  });
  return {
    read: readByKey.load(target, []),
    firstPage: pageAt(first.next),
    lastPage: pageAt(beforeLast.next),
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

/** Where one application stands in the list, and the cursor of what follows it. */
async function pageOfOne(
  page: number,
  { port, keys }: Target,
): Promise<{ total_items: number; next: string }> {
  const url = `http://127.0.0.1:${port}/applications?size=1&page=${page}`;
  const response = await fetch(url, { headers: { "svc-api-key": keys.management } });
  if (!response.ok) {
    throw new Error(`${url} answered ${response.status} ${await response.text()}`);
  }
  const { pagination } = (await response.json()) as {
    pagination: { total_items: number; next: string };
  };
  return pagination;
}
