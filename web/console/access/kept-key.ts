import { keptIn } from "../../common/storage.js";

/**
 * Where the person asks for it, the key is kept for this tab alone, until it
 * is closed: never where other tabs, or a later visit, would find it.
 */
export const keptKey = keptIn("sessionStorage", "latchkey-key");
