import Sequencer from "@jest/test-sequencer";

/** Files that are short, since what they try is written elsewhere, and run for long. */
const long = [
  ...["api.rest", "api.grpc", "api.grpc-web", "api.connect"],
  ...["events/watch", "access/watch", "access/stream", "fuzz/rest"],
].map((name) => `/test/${name}.test.ts`);

const isLong = ({ path }) => long.some((end) => path.endsWith(end));

/** A browser takes more than the core of its worker. */
const isInBrowser = ({ path }) => /\/test\/(console\/|docs\.test|examples\.pages)/.test(path);

/** The place of a file in the order, among those of its kind. */
const rankOf = (test) => (isInBrowser(test) ? 2 : isLong(test) ? 0 : 1);

/**
 * Where jest has not seen yet how long they take, it runs large files first.
 * Those that are long all the same would be the last ones then, and workers
 * would wait for one of them. Browsers come last, so that nothing that counts
 * on a core of its own, as attacks do, runs beside them.
 */
export default class InGoodOrder extends Sequencer {
  sort(tests) {
    return super.sort(tests).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
