import type { Labels, Value } from "./family.js";

/** Counts what happens seldom, by labels whose values are few. */
export interface LabelCounts {
  count(...labels: readonly (string | number)[]): void;
  values(): Value[];
}

export function createLabelCounts(...names: readonly string[]): LabelCounts {
  const counts = new Map<string, { readonly labels: Labels; value: number }>();

  return {
    count(...labels) {
      const key = labels.join(" ");
      const counted = counts.get(key);
      if (counted) {
        counted.value++;
      } else {
        const pairs = names.map((name, at) => [name, labels[at] ?? ""]);
        counts.set(key, { labels: Object.fromEntries(pairs), value: 1 });
      }
    },

    values: () => [...counts.values()],
  };
}
