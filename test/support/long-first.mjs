import Sequencer from "@jest/test-sequencer";

/** Files that are short, since what they try is written elsewhere, and run for long. */
const long = [
  ...["api.rest", "api.grpc", "api.grpc-web", "api.connect"],
  ...["events/watch", "access/watch", "access/stream", "fuzz/rest"],
].map((name) => `/test/${name}.test.ts`);

const isLong = ({ path }) => long.some((end) => path.endsWith(end));

/**
 * Where jest has not seen yet how long they take, it runs large files first.
 * These would be the last ones then, and workers would wait for one of them.
 */
export default class LongFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
