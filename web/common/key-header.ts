import { defaultKeyHeader } from "../../src/contract/headers.js";

/** The header for keys, which the service tells in the page. */
export const keyHeader =
  document.querySelector<HTMLMetaElement>('meta[name="key-header"]')?.content ?? defaultKeyHeader;
