import Sequencer from "@jest/test-sequencer";

/**
 * Without recorded durations, jest runs large files first. These files, and those of the full suite,
 * are small but slow: started last, they would leave the other workers idle.
 */
const longFiles = [
  "contract/api/rest",
  "contract/api/grpc",
  "contract/api/connect",
  "contract/store/mongo",
  "contract/store/mongo-store-wide",
  "contract/store/lmdb",
  "faults/mongo",
  "fuzz/fuzz",
  "store/mongo/feed-failures",
  "store/mongo/feeds",
  "services/access/watch",
  "services/events/watch",
  "services/access/stream",
].map((name) => `/test/${name}.test.ts`);

const isLong = ({ path }) =>
  path.endsWith(".full.test.ts") || longFiles.some((file) => path.endsWith(file));

export default class LongFilesFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
