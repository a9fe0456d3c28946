import { ArrowDown, ArrowUp, ArrowUpDown } from "lucide-react";
import { type CSSProperties, type ReactNode, useRef } from "react";
import { Link } from "wouter";
import { Checkbox } from "./fields.js";
import { type RenderedRow, useRenderedRows } from "./rendered-rows.js";

export interface Column<Row> {
  readonly title: string;
  cell(row: Row): ReactNode;
  /** A track of the CSS grid, such as `120px`. The first column takes the remaining width. */
  readonly width?: string;
  /** The track in a table of less than 1000 px. */
  readonly compactWidth?: string;
  /** The value for `onSort`. Without it, the column cannot be sorted. */
  readonly sortBy?: string;
  /** Leaves the column out of tables of less than 800 px, or of the cards below 660 px. */
  readonly hiddenIn?: readonly ("narrow" | "card")[];
}

export interface Sort {
  readonly by: string;
  readonly isDescending: boolean;
}

interface Selection<Row> {
  /** The keys of the selected rows. */
  readonly selected: ReadonlySet<string>;
  nameOf(row: Row): string;
  onChange(selected: ReadonlySet<string>): void;
}

interface DataTableProps<Row> {
  /** The accessible name. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly count: number;
  /** Undefined while the row loads. */
  rowAt(index: number): Row | undefined;
  keyOf(row: Row): string;
  /** Makes the first cell a link that covers the row. */
  readonly hrefOf?: (row: Row) => string;
  /** Makes the first cell a button that covers the row. */
  readonly onOpen?: (row: Row) => void;
  readonly sort?: Sort;
  /** The service sorts each column in one direction only. */
  onSort?(by: string): void;
  /** Adds a column of checkboxes. Select-all covers the loaded rows. */
  readonly selection?: Selection<Row>;
  readonly isLoading?: boolean;
  /** Shown instead of the table if there are no rows and none are loading. */
  readonly empty?: ReactNode;
  /** The visible range, to load its rows. */
  onRange?(first: number, last: number): void;
}

/** The number of gray rows while the first rows load. */
const skeletonRows = 6;

/** A table with a sticky header, sorting, selection, row links, and cards on phones. Long lists render only visible rows. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, selection, isLoading = false, empty, rowAt, keyOf } = props;
  const isWaiting = isLoading && props.count === 0;
  const count = isWaiting ? skeletonRows : props.count;
  const body = useRef<HTMLTableSectionElement>(null);
  const { rows, style } = useRenderedRows(body, count, props.onRange);
  if (count === 0) {
    return empty;
  }
  const keys = new Set<string | number>();
  return (
    <table
      className="data-table"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-busy={isLoading}
      style={tracksOf(columns, selection !== undefined)}
    >
      <Head {...props} />
      <tbody ref={body} style={style}>
        {rows.map(({ index, ...place }) => {
          const row = isWaiting ? undefined : rowAt(index);
          const id = row && keyOf(row);
          // A row keeps the focus when rows appear above it. While a list is refetched, two pages may have the same row.
          const key = id === undefined || keys.has(id) ? index : id;
          keys.add(key);
          return <TableRow key={key} table={props} row={row} index={index} {...place} />;
        })}
      </tbody>
    </table>
  );
}

/** The columns of the grid at each width of the table. */
function tracksOf<Row>(columns: readonly Column<Row>[], hasSelection: boolean): CSSProperties {
  const remaining = "minmax(120px, 1fr)";
  const join = (tracks: readonly string[]) =>
    [...(hasSelection ? ["16px"] : []), ...tracks].join(" ");
  const compact = ({ width = remaining, compactWidth = width }: Column<Row>) => compactWidth;
  return {
    "--tracks": join(columns.map(({ width = remaining }) => width)),
    "--compact-tracks": join(columns.map(compact)),
    "--narrow-tracks": join(
      columns.filter(({ hiddenIn }) => !hiddenIn?.includes("narrow")).map(compact),
    ),
  } as CSSProperties;
}

function Head<Row>({ columns, sort, onSort, selection, ...rest }: DataTableProps<Row>) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {selection && (
          <th scope="col">
            <SelectAll selection={selection} {...rest} />
          </th>
        )}
        {columns.map(({ title, sortBy, hiddenIn }) => {
          const isSorted = sortBy !== undefined && sort?.by === sortBy;
          const Arrow = isSorted ? (sort.isDescending ? ArrowDown : ArrowUp) : ArrowUpDown;
          return (
            <th
              key={title}
              scope="col"
              data-hidden={hiddenIn?.join(" ")}
              aria-sort={isSorted ? (sort.isDescending ? "descending" : "ascending") : undefined}
            >
              {sortBy === undefined || !onSort ? (
                title
              ) : (
                <button
                  type="button"
                  className="sort-button"
                  aria-disabled={isSorted}
                  onClick={() => isSorted || onSort(sortBy)}
                >
                  {title}
                  <Arrow size={12} aria-hidden />
                </button>
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

type SelectAllProps<Row> = Pick<DataTableProps<Row>, "count" | "rowAt" | "keyOf"> & {
  readonly selection: Selection<Row>;
};

function SelectAll<Row>({ count, rowAt, keyOf, selection }: SelectAllProps<Row>) {
  const { selected, onChange } = selection;
  const loaded = Array.from({ length: count }, (_, index) => rowAt(index))
    .filter((row) => row !== undefined)
    .map(keyOf);
  const isLoadedSelected = selected.size > 0 && loaded.every((key) => selected.has(key));
  const isAllSelected = isLoadedSelected && selected.size >= count;
  return (
    <Checkbox
      label="Select all"
      checked={isAllSelected}
      isMixed={selected.size > 0 && !isAllSelected}
      onChange={() => onChange(new Set(isLoadedSelected ? [] : loaded))}
    />
  );
}

interface TableRowProps<Row> extends RenderedRow {
  readonly table: DataTableProps<Row>;
  readonly row: Row | undefined;
}

function TableRow<Row>({ table, row, index, style, measure }: TableRowProps<Row>) {
  const { columns, selection, keyOf } = table;
  const key = row === undefined ? undefined : keyOf(row);
  const isSelected = key !== undefined && selection?.selected.has(key);
  return (
    <tr
      ref={measure}
      style={style}
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={selection && isSelected}
    >
      {selection && (
        <td className="select-cell">
          {row !== undefined && key !== undefined && (
            <Checkbox
              aria-label={`Select ${selection.nameOf(row)}`}
              checked={isSelected ?? false}
              onChange={(isChecked) => toggle(selection, key, isChecked)}
            />
          )}
        </td>
      )}
      {columns.map((column, position) => (
        <td key={column.title} data-title={column.title} data-hidden={column.hiddenIn?.join(" ")}>
          {row === undefined ? (
            <span className="skeleton-line">
              {position === 0 && <span className="visually-hidden">Loading…</span>}
            </span>
          ) : position === 0 ? (
            <FirstCell table={table} row={row}>
              {column.cell(row)}
            </FirstCell>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
    </tr>
  );
}

function toggle<Row>(selection: Selection<Row>, key: string, isChecked: boolean): void {
  const selected = new Set(selection.selected);
  if (isChecked) {
    selected.add(key);
  } else {
    selected.delete(key);
  }
  selection.onChange(selected);
}

interface FirstCellProps<Row> {
  readonly table: DataTableProps<Row>;
  readonly row: Row;
  readonly children: ReactNode;
}

function FirstCell<Row>({ table: { hrefOf, onOpen }, row, children }: FirstCellProps<Row>) {
  if (hrefOf) {
    return (
      <Link className="row-link" href={hrefOf(row)}>
        {children}
      </Link>
    );
  }
  return onOpen ? (
    <button type="button" className="row-link" onClick={() => onOpen(row)}>
      {children}
    </button>
  ) : (
    children
  );
}
