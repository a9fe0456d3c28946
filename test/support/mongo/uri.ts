/** The MongoDB of this test run; see mongod.ts. */
export const uri = process.env.MONGODB_TEST_URI ?? "";

/** Sets options in a URI, which may have several hosts. */
export function withOptions(base: string, options: Readonly<Record<string, string>>): string {
  const [address = "", query] = base.split("?");
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(options)) {
    params.set(name, value);
  }
  return `${address.replace(/^([a-z+]+:\/\/[^/]*)$/, "$1/")}?${params}`;
}

/** Long timeouts: a slow machine is not a failure of the database. */
export const longTimeouts = {
  connectTimeoutMS: "60000",
  serverSelectionTimeoutMS: "60000",
  socketTimeoutMS: "60000",
  waitQueueTimeoutMS: "60000",
};

/** The same URI with long timeouts. */
export const longTimeoutUri = withOptions(uri, longTimeouts);
