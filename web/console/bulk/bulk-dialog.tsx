import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { formatNumber } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { LeaveGuard } from "../ui/leave-guard.js";
import { endWaiting } from "../ui/waiting-calls.js";
import { BulkResults, failedOf, succeededOf } from "./bulk-results.js";
import { type Act, type BulkItem, type BulkResult, runBulk } from "./run-bulk.js";
import { useUnstoredKeys } from "./unstored-keys.js";

interface BulkDialogProps<Item extends BulkItem> {
  readonly title: string;
  /** The items to act on. */
  readonly items: readonly Item[];
  /** Describes the action and warns of its effects. */
  readonly children: ReactNode;
  /** The label of the confirm button. */
  readonly confirm: string;
  readonly tone: "primary" | "danger";
  readonly isBlocked?: boolean;
  /** The result for an item as a word, for example `disabled`. */
  readonly done: string;
  /** The item that ends the sign-in. It is the last one. */
  readonly lastId?: string;
  readonly act: Act<Item>;
  /** Called with the results, which are empty if the user canceled, and the items to act on again. */
  onClose(results: readonly BulkResult<Item>[], rest: readonly Item[]): void;
}

/** Summarizes an action on several items, runs it, and shows the result of each. */
export function BulkDialog<Item extends BulkItem>(props: BulkDialogProps<Item>) {
  const { title, items, children, confirm, tone, isBlocked = false, done, onClose } = props;
  const { results, isRunning, run, stop, forgetKeys } = useBulk(props);
  const failed = failedOf(results).filter(({ isGone = false }) => !isGone);
  const finished = new Set(
    results.filter((one) => !failed.includes(one)).map(({ item }) => item.id),
  );
  const rest = items.filter(({ id }) => !finished.has(id));
  const hasKeys = results.some(({ key }) => key !== undefined);

  function close(): void {
    forgetKeys();
    onClose(results, rest);
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isBlocked) {
      void run(items);
    }
  }

  if (!isRunning && results.length === 0) {
    return (
      <Dialog title={title} onClose={() => onClose([], items)}>
        <form className="confirm" onSubmit={submit}>
          {children}
          <NameList items={items} />
          <div className="dialog-actions">
            <Button onClick={() => onClose([], items)}>Cancel</Button>
            <Button type="submit" tone={tone} disabled={isBlocked || items.length === 0}>
              {confirm}
            </Button>
          </div>
        </form>
      </Dialog>
    );
  }
  return (
    <Dialog
      title={isRunning ? `${succeededOf(results).length} of ${items.length} ${done}` : "Results"}
      isDismissible={!isRunning && !hasKeys}
      onClose={close}
    >
      {isRunning && <progress aria-label="Progress" max={items.length} value={results.length} />}
      <BulkResults results={results} total={items.length} done={done} isRunning={isRunning} />
      <div className="dialog-actions">
        {isRunning ? (
          <Button onClick={stop}>Stop</Button>
        ) : (
          <>
            {rest.length > 0 && (
              <Button onClick={() => void run(rest)}>
                {rest.length === failed.length
                  ? `Retry ${failed.length} failed`
                  : `Continue with ${rest.length}`}
              </Button>
            )}
            <Button tone="primary" onClick={close}>
              {hasKeys ? "I have stored the keys" : "Done"}
            </Button>
          </>
        )}
      </div>
      <LeaveGuard isOn={isRunning || hasKeys} title="Leave this page?" onLeave={forgetKeys}>
        <p>
          {hasKeys
            ? "The new keys cannot be shown again. You would have to rotate them once more."
            : "The action is not finished. The remaining items would not change."}
        </p>
      </LeaveGuard>
    </Dialog>
  );
}

function useBulk<Item extends BulkItem>({ act, lastId }: BulkDialogProps<Item>) {
  const [results, setResults] = useState<readonly BulkResult<Item>[]>([]);
  const [isRunning, setIsRunning] = useState(false);
  const keys = useUnstoredKeys();
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  useEffect(() => keys.show(), [keys]);

  function stop(): void {
    abort.current.abort();
    endWaiting("canceled");
  }

  async function run(items: readonly Item[]): Promise<void> {
    abort.current = new AbortController();
    const { signal } = abort.current;
    const retried = new Set(items.map(({ id }) => id));
    function add(result: BulkResult<Item>): void {
      setResults((before) => [...before, result]);
      if (result.key !== undefined) {
        keys.add(result);
      }
    }
    setResults((before) => before.filter(({ item }) => !retried.has(item.id)));
    setIsRunning(true);
    const isLast = ({ id }: Item) => id === lastId;
    await runBulk(
      items.filter((item) => !isLast(item)),
      act,
      signal,
      add,
    );
    await runBulk(items.filter(isLast), act, signal, add);
    setIsRunning(false);
  }

  return { results, isRunning, run, stop, forgetKeys: keys.forget };
}

/** Enough to recognize the selection. */
const maxNames = 8;

function NameList({ items }: { readonly items: readonly BulkItem[] }) {
  const rest = items.length - maxNames;
  return (
    <ul className="bulk-names" aria-label="Selected">
      {items.slice(0, maxNames).map(({ id, name }) => (
        <li key={id}>{name}</li>
      ))}
      {rest > 0 && <li className="muted">and {formatNumber(rest)} more</li>}
    </ul>
  );
}
