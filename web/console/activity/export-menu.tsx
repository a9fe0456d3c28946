import { useTransport } from "@connectrpc/connect-query";
import { Braces, Download, Sheet, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { problemOf } from "../../../src/contract/problem-report.js";
import { countOf, formatNumber } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import { Menu } from "../ui/menu.js";
import { serviceNow } from "../ui/service-clock.js";
import { toast } from "../ui/toast.js";
import { type ActivityFilter, toListRequest } from "./activity-filter.js";

/** The most events in one export. */
const maxExported = 10_000;

const types = { csv: "text/csv", jsonl: "application/jsonl" } as const;

/** Saves the events that match the filter as a file. */
export function ExportMenu({ filter }: { readonly filter: ActivityFilter }) {
  const transport = useTransport();
  const [progress, setProgress] = useState<number>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function save(extension: keyof typeof types): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    setProgress(0);
    try {
      const [{ readEvents, toCsvFile, toJsonLines }, { saveFile }] = await Promise.all([
        import("./export-events.js"),
        import("../ui/save-file.js"),
      ]);
      const { events, isComplete } = await readEvents({
        transport,
        request: toListRequest(filter),
        max: maxExported,
        signal: controller.signal,
        onProgress: setProgress,
      });
      const write = extension === "csv" ? toCsvFile : toJsonLines;
      const date = new Date(serviceNow()).toISOString().slice(0, 10);
      saveFile(`latchkey-events-${date}.${extension}`, types[extension], write(events));
      toast({
        title: `Exported ${countOf(events.length, "event")}`,
        ...(!isComplete && {
          description:
            "The export stopped before the oldest event. To export older ones, choose an earlier time range.",
        }),
      });
    } catch (error) {
      toast(
        controller.signal.aborted
          ? { title: "Export canceled" }
          : { title: "Export failed", description: problemOf(error).detail, tone: "danger" },
      );
    } finally {
      setProgress(undefined);
    }
  }

  if (progress !== undefined) {
    return (
      <>
        <span role="status" className="hint">
          Exporting {formatNumber(progress)}…
        </span>
        <Button autoFocus icon={X} onClick={() => running.current?.abort()}>
          Cancel
        </Button>
      </>
    );
  }
  return (
    <Menu
      trigger={<Button icon={Download}>Export</Button>}
      header={
        <span className="hint">
          The newest {formatNumber(maxExported)} events that match the filters
        </span>
      }
      groups={[
        [
          { label: "CSV", icon: Sheet, onSelect: () => void save("csv") },
          { label: "JSON lines", icon: Braces, onSelect: () => void save("jsonl") },
        ],
      ]}
    />
  );
}
