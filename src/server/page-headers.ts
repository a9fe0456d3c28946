import type { HeaderList } from "./header-list.js";

/** Answers may carry keys. */
export const neverKept: HeaderList = ["cache-control", "no-store"];

/**
 * What keeps a browser from taking an answer for a page: it guesses no type,
 * and what it shows may load nothing and stand in no frame. More would say
 * the same again: a key is sent in a header of its own, so nothing that a page
 * includes without asking, or links to, comes with one.
 */
export const noPage: HeaderList = [
  ...["x-content-type-options", "nosniff"],
  ...["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
];

/** Tells browsers that came by TLS to come by nothing else for a year. */
export const tlsOnly = ["strict-transport-security", "max-age=31536000"] as const;
