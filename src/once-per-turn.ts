import { performance } from "node:perf_hooks";

const { nodeTiming } = performance;

/** Tells turns of the event loop apart: what runs in one turn is told the same number. */
export function currentTurn(): number {
  return nodeTiming.uvMetricsInfo.loopCount;
}

/** Has work done when the present turn of the event loop is over, once however often it is asked for until then. */
export function oncePerTurn(work: () => void): () => void {
  let isSet = false;

  function begin(): void {
    isSet = false;
    work();
  }

  return () => {
    if (!isSet) {
      isSet = true;
      setImmediate(begin);
    }
  };
}
