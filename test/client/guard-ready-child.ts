import { createGuard } from "../../src/client/create-guard.js";

/** Waits until a guard is ready, and prints a line for each failure of its stream. */
const [url = "", key] = process.argv.slice(2);

await createGuard({ url, key, onError: ({ code }) => console.log(JSON.stringify(code)) }).ready();
