/** The MongoDB of this test run; see mongod.ts. */
export const uri = process.env.MONGODB_TEST_URI ?? "";

/** A URI with other options; it may name several hosts. */
export function withOptions(base: string, options: Readonly<Record<string, string>>): string {
  const [address = "", query] = base.split("?");
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(options)) {
    params.set(name, value);
  }
  return `${address.replace(/^([a-z+]+:\/\/[^/]*)$/, "$1/")}?${params}`;
}

/** Timeouts that no test runs into: a busy machine may be slow, which is no failure of the database. */
const longTimeouts = {
  connectTimeoutMS: "60000",
  serverSelectionTimeoutMS: "60000",
  socketTimeoutMS: "60000",
  waitQueueTimeoutMS: "60000",
};

/** The same, for a store that waits as long as a busy machine needs. */
export const patientUri = withOptions(uri, longTimeouts);
