import { CircleAlert, CircleCheck, Download } from "lucide-react";
import { Button, CopyButton, iconSize } from "../ui/buttons.js";
import { toCsv } from "../ui/csv.js";
import { Notice } from "../ui/display.js";
import { saveFile } from "../ui/save-file.js";
import type { BulkResult } from "./run-bulk.js";

export function failedOf<Result extends BulkResult>(results: readonly Result[]): Result[] {
  return results.filter(({ reason }) => reason !== undefined);
}

export function succeededOf<Result extends BulkResult>(results: readonly Result[]): Result[] {
  return results.filter(({ reason }) => reason === undefined);
}

interface BulkResultsProps {
  readonly results: readonly BulkResult[];
  readonly total: number;
  readonly done: string;
  readonly isRunning: boolean;
}

/** The result of each item, the failed ones first. */
export function BulkResults({ results, total, done, isRunning }: BulkResultsProps) {
  const failed = failedOf(results);
  const succeeded = succeededOf(results);
  const keys = succeeded.filter(({ key }) => key !== undefined);
  const missing = isRunning ? 0 : total - results.length;
  return (
    <>
      {!isRunning && (
        <p role="status">
          {[
            `${succeeded.length} ${done}`,
            failed.length > 0 && `${failed.length} failed`,
            missing > 0 && `${missing} not started`,
          ]
            .filter(Boolean)
            .join(", ")}
          .
        </p>
      )}
      {keys.length > 0 && <NewKeys results={keys} isRunning={isRunning} />}
      <ul className="bulk-results" aria-label="Results">
        {[...failed, ...succeeded].map((result) => (
          <ResultItem key={result.item.id} result={result} done={done} />
        ))}
      </ul>
    </>
  );
}

function ResultItem({ result, done }: { readonly result: BulkResult; readonly done: string }) {
  const { item, reason, key } = result;
  return (
    <li data-failed={reason !== undefined}>
      {reason === undefined ? (
        <CircleCheck size={iconSize} aria-hidden />
      ) : (
        <CircleAlert size={iconSize} aria-hidden />
      )}
      <div>
        <strong>{item.name}</strong>
        {reason !== undefined && <p className="hint">{reason}</p>}
        {key !== undefined && (
          <div className="bulk-key">
            <code>{key}</code>
            <CopyButton isCompact text={key} label={`Copy the key of ${item.name}`} />
          </div>
        )}
      </div>
      {reason === undefined && <span className="hint">{done}</span>}
    </li>
  );
}

function NewKeys({ results, isRunning }: Pick<BulkResultsProps, "results" | "isRunning">) {
  const keys = results.map(({ item: { id, name }, key = "" }) => ({ id, name, key }));
  const csv = toCsv([["id", "name", "key"], ...keys.map(({ id, name, key }) => [id, name, key])]);
  const json = `${JSON.stringify(keys, null, 2)}\n`;
  return (
    <>
      <Notice tone="warning">
        <p>
          These keys are shown only once. Store them in a secret manager, and delete a downloaded
          file afterwards.
        </p>
      </Notice>
      {!isRunning && (
        <div className="actions">
          <Button icon={Download} onClick={() => saveFile("latchkey-keys.csv", "text/csv", csv)}>
            Download CSV
          </Button>
          <Button
            icon={Download}
            onClick={() => saveFile("latchkey-keys.json", "application/json", json)}
          >
            Download JSON
          </Button>
        </div>
      )}
    </>
  );
}
