import Sequencer from "@jest/test-sequencer";

/**
 * Before jest knows how long a file takes, it runs large files first. These
 * are small and take long, so that they would start last and leave the other
 * workers idle.
 */
const longFiles = [
  ...["api.rest", "api.grpc", "api.connect"],
  ...["store.mongo", "store.mongo.whole", "store.lmdb"],
  ...["access/watch", "events/watch", "access/stream"],
].map((name) => `/test/${name}.test.ts`);

const isLong = ({ path }) => longFiles.some((file) => path.endsWith(file));

export default class LongFilesFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
