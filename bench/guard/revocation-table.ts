import { percentile } from "../statistics.js";
import { type Column, format } from "../table.js";
import type { Revocation } from "./orders.js";

/** What became of keys that were revoked in the same way. */
export interface RevocationSeries {
  readonly store: string;
  readonly way: string;
  readonly revocations: readonly Revocation[];
}

type Figure = (revocation: Revocation) => number;

const untilNoLongerAllowed: Figure = ({ refusedFrom }) => refusedFrom;
const untilRefused: Figure = ({ refusedBy }) => refusedBy;

export const revocationColumns: readonly Column<RevocationSeries>[] = [
  { title: "Store", isText: true, text: ({ store }) => store },
  { title: "Revoked through", isText: true, text: ({ way }) => way },
  { title: "Revocations", text: ({ revocations }) => format(revocations.length, 0) },
  {
    title: "Refused immediately",
    text: ({ revocations }) => format(revocations.filter(({ allowed }) => allowed === 0).length, 0),
  },
  {
    title: "Checks allowed after",
    text: ({ revocations }) =>
      format(
        revocations.reduce((sum, { allowed }) => sum + allowed, 0),
        0,
      ),
  },
  { title: "Still allowed, ms: p50", text: at(50, untilNoLongerAllowed) },
  { title: "p99", text: at(99, untilNoLongerAllowed) },
  { title: "max", text: at(100, untilNoLongerAllowed) },
  { title: "Refused after ms: p50", text: at(50, untilRefused) },
  { title: "p99", text: at(99, untilRefused) },
  { title: "max", text: at(100, untilRefused) },
];

/** For the page: how long a revoked key was still allowed. */
export const pageColumns = [
  ...revocationColumns.slice(0, 4),
  ...revocationColumns.slice(5, 8),
] as const;

function at(percent: number, figure: Figure): (series: RevocationSeries) => string {
  return ({ revocations }) => format(percentile(revocations.map(figure), percent), 2);
}
