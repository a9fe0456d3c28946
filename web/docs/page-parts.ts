import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const here = import.meta.dirname;
const top = join(here, "top.html");
const protoReference = join(here, "..", "..", "gen", "proto.html");

/** Puts what the pages of the documentation share into them, and the proto reference into its own. */
export function pageParts(): Plugin {
  return {
    name: "page-parts",
    transformIndexHtml: {
      order: "pre",
      handler: (html, { path }) =>
        html
          .replace("<!-- top -->", () => topOf(path.replace(/\/index\.html$/, "")))
          .replace("<!-- proto reference -->", () => readFileSync(protoReference, "utf8")),
    },
  };
}

/** The head of the page, in which the link to the page itself is marked. */
function topOf(page: string): string {
  const own = `href="${page}"`;
  return readFileSync(top, "utf8").trimEnd().replace(own, `${own} aria-current="page"`);
}
