import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";

/** Settings for the page. The public key is no secret. */
export interface PageSettings {
  readonly latchkey: string;
  readonly backend: string;
  readonly publicKey: string;
}

const folder = join(import.meta.dirname, "../browser");
const files: Readonly<Record<string, { name: string; type: string }>> = {
  "/": { name: "index.html", type: "text/html" },
  "/page.js": { name: "page.js", type: "text/javascript" },
};

/** Serves examples/browser with a strict content security policy. */
export function createPageServer(settings: PageSettings): Server {
  const headers = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": [
      "default-src 'none'",
      "script-src 'self'",
      `connect-src 'self' ${settings.latchkey} ${settings.backend}`,
      "img-src data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
  };
  return createServer(async ({ url = "" }, response) => {
    const file = files[url];
    if (url === "/settings.json") {
      response.writeHead(200, { ...headers, "Content-Type": "application/json" });
      response.end(JSON.stringify(settings));
    } else if (file) {
      const text = await readFile(join(folder, file.name));
      response.writeHead(200, { ...headers, "Content-Type": `${file.type}; charset=utf-8` });
      response.end(text);
    } else {
      response.writeHead(404, headers).end();
    }
  });
}
