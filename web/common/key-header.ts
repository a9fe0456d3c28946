import { defaultKeyHeader } from "../../src/contract/headers.js";

/** The name of the key header. The service writes it into the page. */
export const keyHeader =
  document.querySelector<HTMLMetaElement>('meta[name="key-header"]')?.content ?? defaultKeyHeader;
