import type { Plugin } from "vite";

const dataUrl = /url\((?:"data:(?:[^"\\]|\\.)*"|data:[^)]*)\)/g;

/** Takes pictures out of the styles of a library that stand in them as data: the policy of the pages forbids those. */
export function withoutDataUrls(library: RegExp): Plugin {
  return {
    name: "without-data-urls",
    enforce: "pre",
    transform: (code, id) =>
      library.test(id) && id.endsWith(".css")
        ? { code: code.replace(dataUrl, "none"), map: null }
        : null,
  };
}
