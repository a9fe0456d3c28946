import type { Worker } from "node:cluster";
import { inTime } from "../in-time.js";
import type { Order, Report } from "./report.js";

/** How long is waited for what all workers have counted, in milliseconds. */
const patience = 5_000;

/** Creates what asks the process that started this one for what all workers have counted. */
export function createScrapeAll(
  worker: Worker,
  tell: (report: Report) => void,
): () => Promise<string> {
  const waiting = new Map<number, (text: string) => void>();
  let last = 0;
  worker.on("message", (order: Order) => {
    if ("scraped" in order) {
      waiting.get(order.scraped)?.(order.text);
      waiting.delete(order.scraped);
    }
  });
  return () => {
    const number = ++last;
    const told = new Promise<string>((resolve) => waiting.set(number, resolve));
    tell({ scrape: number });
    return inTime(told, patience, () => {
      waiting.delete(number);
      throw new Error("the process that started the workers does not tell what they counted");
    });
  };
}
