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
  { title: "Revoked", isText: true, text: ({ way }) => way },
  { title: "Revokes", text: ({ revocations }) => format(revocations.length, 0) },
  {
    title: "Refused at once",
    text: ({ revocations }) => format(revocations.filter(({ allowed }) => allowed === 0).length, 0),
  },
  {
    title: "Allowed after",
    text: ({ revocations }) =>
      format(
        revocations.reduce((sum, { allowed }) => sum + allowed, 0),
        0,
      ),
  },
  { title: "Allowed for ms: p50", text: at(50, untilNoLongerAllowed) },
  { title: "p99", text: at(99, untilNoLongerAllowed) },
  { title: "max", text: at(100, untilNoLongerAllowed) },
  { title: "Refused after ms: p50", text: at(50, untilRefused) },
  { title: "p99", text: at(99, untilRefused) },
  { title: "max", text: at(100, untilRefused) },
];

function at(percent: number, figure: Figure): (series: RevocationSeries) => string {
  return ({ revocations }) => format(percentile(revocations.map(figure), percent), 2);
}
