import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "@jest/globals";
import MiniSearch from "minisearch";
import { type ProblemCode, problemCatalogue, problemUri } from "../../src/contract/problems.js";
import { createGuardSamples, createSamples } from "../../src/contract/samples/samples.js";
import {
  findEntries,
  type SearchEntry,
  searchOptions,
} from "../../web/docs/search/search-options.js";
import { synonyms } from "../../web/docs/search/words.js";
import { textOf } from "./html.js";

const folder = join("dist", "web");
const files = readdirSync(folder, { recursive: true, encoding: "utf8" });

/** The pages by URL. */
const pages = new Map(
  files
    .filter((name) => /^docs\b.*\.html$/.test(name))
    .map((name) => [
      `/${name.slice(0, -".html".length)}`,
      readFileSync(join(folder, name), "utf8"),
    ]),
);

function matchAll(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group = ""]) => group);
}

function hasAnchor(url: string, anchor: string): boolean {
  return pages.get(url)?.includes(` id="${anchor}"`) ?? false;
}

describe("the documentation site", () => {
  it("has a page for each Markdown file in docs", () => {
    const documents = readdirSync("docs", { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md") && name !== "README.md")
      .map((name) => `/docs/${name.slice(0, -".md".length)}`);
    expect(documents.length).toBeGreaterThan(20);
    expect([...pages.keys()]).toEqual(expect.arrayContaining(documents));
  });

  it("has no broken links, anchors or assets", () => {
    const broken = [...pages].flatMap(([url, html]) =>
      matchAll(html, / (?:href|src|srcset)="([^"]*)"/g).filter((link) => {
        const { origin, pathname, hash } = new URL(link, `http://site${url}`);
        if (origin !== "http://site" || ["/console", "/openapi.json"].includes(pathname)) {
          return false;
        }
        if (pathname.startsWith("/assets/")) {
          return !files.includes(pathname.slice(1));
        }
        return !pages.has(pathname) || (hash !== "" && !hasAnchor(pathname, hash.slice(1)));
      }),
    );
    expect(broken).toEqual([]);
  });

  it("has every page and anchor that the console links to", () => {
    const links = readdirSync("web/console", { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name))
      .flatMap((name) =>
        matchAll(readFileSync(join("web/console", name), "utf8"), /["'`](\/docs\b[^"'`]*)/g),
      );
    expect(links.length).toBeGreaterThan(4);
    const broken = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      return !pages.has(path) || (anchor !== undefined && !hasAnchor(path, anchor));
    });
    expect(broken).toEqual([]);
  });

  it("has a page at the start of each URL", () => {
    const parents = [...pages.keys()].map((url) => dirname(url)).filter((url) => url !== "/");
    expect(parents.length).toBeGreaterThan(50);
    expect([...new Set(parents)].filter((url) => !pages.has(url))).toEqual([]);
    expect(pages.get("/docs/guides")).toContain('href="/docs/guides/rotate-a-key"');
    expect(pages.get("/docs/errors")).toContain('href="/docs/errors/nonce_used"');
  });

  it("has no inline scripts or styles, which the content security policy blocks", () => {
    for (const [url, html] of pages) {
      expect([
        url,
        matchAll(html, /<(script(?![^>]* src=)|style|[^>]* (?:style|on[a-z]+)=)/g),
      ]).toEqual([url, []]);
    }
  });

  it("has unique ids and one main heading on each page", () => {
    for (const [url, html] of pages) {
      const ids = matchAll(html, / id="([^"]*)"/g);
      expect([url, ids.filter((id, index) => ids.indexOf(id) !== index)]).toEqual([url, []]);
      const headings = matchAll(html, /<(h1)\b/g);
      expect([url, headings.length]).toEqual([url, 1]);
    }
  });

  it("skips no level of headings", () => {
    for (const [url, html] of pages) {
      const levels = matchAll(html, /<h([1-6])\b/g).map(Number);
      const skipped = levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1);
      expect([url, skipped]).toEqual([url, []]);
    }
  });

  it("names either all columns of a table or none", () => {
    for (const [url, html] of pages) {
      const heads = matchAll(html, /<thead>(.*?)<\/thead>/gs);
      const unnamed = heads.filter(
        (head) => /<th[^>]*><\/th>/.test(head) && /<th[^>]*>(?!<\/th>)/.test(head),
      );
      expect([url, unnamed]).toEqual([url, []]);
    }
  });

  it("links to files of the repository that exist", () => {
    const documents = [
      "README.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "SECURITY.md",
      "examples/README.md",
      ...readdirSync("docs", { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".md"))
        .map((name) => join("docs", name)),
    ];
    const broken = documents.flatMap((document) =>
      matchAll(readFileSync(document, "utf8"), /\]\(((?!https?:|#)[^)#\s]+)/g)
        .map((link) => normalize(join(dirname(document), link)))
        .filter((file) => !existsSync(file))
        .map((file) => `${document}: ${file}`),
    );
    expect(broken).toEqual([]);
  });
});

describe("the tabs of code samples", () => {
  const origin = "http://localhost:8080";
  const languages = ["curl", "TypeScript", "Go", "Python"];

  /** The text and the labels of each group of tabs. */
  function tabsOf(url: string) {
    const groups = matchAll(pages.get(url) ?? "", /<div class="tabs">(.*?)<\/div>\n<\/div>/gs);
    return groups.map((html) => ({
      labels: matchAll(html, /class="code-label">([^<]*)/g),
      text: textOf(html),
    }));
  }

  it("show programs made from the call in a comment", () => {
    const conditions = [{ attribute: "container", operator: "equals", value: "/customers/anna/" }];
    const rule = { priority: 1, permissions: ["token:read"], transform: "mask", conditions };
    const call = { origin, method: "POST", path: "/sessions/authorize" };
    const [, ...samples] = createSamples({ ...call, body: { nonce: "lk_non_…", rules: [rule] } });
    const [, , , authorize] = tabsOf("/docs/tutorials/first-session");
    expect(samples).toHaveLength(3);
    for (const { code } of samples) {
      expect(authorize?.text).toContain(code);
    }
    // Without a key.
    const [revoke] = tabsOf("/docs/guides/respond-to-a-leaked-key");
    expect(revoke?.text).toContain('"http://localhost:8080/keys/revoke"');
    expect(revoke?.text).not.toContain("SVC_API_KEY");
  });

  it.each([
    ["/docs/get-started", 5],
    ["/docs/tutorials/first-session", 6],
    ["/docs/guides/rotate-a-key", 3],
    ["/docs/guides/respond-to-a-leaked-key", 2],
    ["/docs/tutorials/gateway", 1],
    ["/docs/guides/restrict-a-key", 3],
    ["/docs/guides/move-data", 1],
    ["/docs/reference/api", 1],
    ["/docs/reference/events", 1],
    ["/docs/reference/standards", 1],
    ["/docs/guides/use-your-own-ids", 1],
  ])("are in four languages in %s", (url, count) => {
    expect(tabsOf(url).map(({ labels }) => labels)).toEqual(Array(count).fill(languages));
  });

  it("show tested programs in docs/tutorials/guard-a-service.md", () => {
    const page = readFileSync("docs/tutorials/guard-a-service.md", "utf8");
    const samples = createGuardSamples({ origin, permission: "token:read" });
    for (const { code } of samples.filter(({ language }) => language !== "typescript")) {
      expect(page).toContain(`\n${code}\n\`\`\`\n`);
    }
    const [tabs] = tabsOf("/docs/tutorials/guard-a-service");
    expect(tabs?.labels).toEqual(["curl", "Go", "Python"]);
  });
});

describe("the pages of errors", () => {
  it.each(Object.keys(problemCatalogue) as ProblemCode[])("describe %s", (code) => {
    const { title, status } = problemCatalogue[code];
    const html = pages.get(problemUri(code)) ?? "";
    const text = html.replaceAll(/<[^>]*>/g, " ").replaceAll("&quot;", '"');
    expect(text).toContain(title);
    expect(text).toMatch(new RegExp(`HTTP status\\s+${status}\\b`));
    expect(text).toContain("What to do");
    expect(text).toMatch(new RegExp(`"reason"\\s*:\\s*"${code.toUpperCase()}"`));
  });

  it("show examples that agree with the catalogue", () => {
    const file = readFileSync("docs/reference/errors.md", "utf8");
    const examples = matchAll(file, /^```json\n(.*?)^```/gms).map((text) => JSON.parse(text));
    expect(examples.length).toBeGreaterThan(2);
    for (const { code, type, title, status } of examples) {
      const expected = problemCatalogue[code as ProblemCode];
      expect({ code, type, title, status }).toEqual({
        code,
        type: problemUri(code),
        title: expected.title,
        status: expected.status,
      });
    }
  });

  it("list the operations that return the error", () => {
    expect(pages.get("/docs/errors/nonce_used")).toContain("POST /sessions/authorize");
    expect(pages.get("/docs/errors/nonce_used")).not.toContain("POST /applications");
    expect(pages.get("/docs/errors/rate_limited")).toContain("Every operation except these:");
  });
});

describe("the search index", () => {
  const [name = ""] = files.filter((file) => /search-[^/]*\.json$/.test(file));
  const index = MiniSearch.loadJSON<SearchEntry>(
    readFileSync(join(folder, name), "utf8"),
    searchOptions,
  );

  it.each([
    ["nonce_used", "/docs/errors/nonce_used"],
    ["rotate key", "/docs/guides/rotate-a-key"],
    ["rotat", "/docs/guides/rotate-a-key"],
    ["CreateApplicationRequest", "/docs/proto#createapplicationrequest"],
    ["create application request", "/docs/proto#createapplicationrequest"],
    ["createGuard", "/docs/reference/client#guard"],
    ["authorizes a session", "/docs/api#authorize-session"],
    // A parameter, a field, an error and a word of the API reference.
    ["deny_status", "/docs/api#forward-auth"],
    ["grace", "/docs/api#regenerate-application-key"],
    ["external_id", "/docs/api#create-application"],
    ["nonce_used", "/docs/api#authorize-session"],
    ["upcoming expirations, with the actor", "/docs/api#events"],
    ["RFC 9457 problem", "/docs/api"],
    // Code, in tutorials and guides.
    ["createGuard", "/docs/tutorials/guard-a-service#2-write-the-service"],
    ["auth_request", "/docs/guides/protect-an-api-behind-a-gateway#statuses-in-nginx"],
    ["rotate_key", "/docs/guides/rotate-a-key"],
    ["kubernets", "/docs/guides/deploy#kubernetes"],
    // The usual name of an error, and its title.
    ["unauthorized", "/docs/errors/unauthenticated"],
    ["missing or invalid signature", "/docs/errors/invalid_signature"],
    ["nonce", "/docs/explanation/guarantees#nonces"],
    ["nonce", "/docs/api#authorize-session"],
    ["who", "/docs/api#list-events"],
  ])("finds %s", (query, url) => {
    const found = findEntries(index, query).map(({ id }) => id);
    expect(found.slice(0, 5)).toContain(url);
  });

  it.each([
    ["rotate", "/docs/guides/rotate-a-key"],
    ["create application", "/docs/api#create-application"],
    ["version_mismatch", "/docs/errors/version_mismatch"],
    ["backup", "/docs/guides/back-up"],
    ["settings", "/docs/reference/settings"],
    ["how do I rotate a key?", "/docs/guides/rotate-a-key"],
    ["rotating keys", "/docs/guides/rotate-a-key"],
  ])("puts the page whose title has %s first", (query, url) => {
    expect(findEntries(index, query)[0]?.id).toBe(url);
  });

  it.each([
    ["nonce used", "/docs/errors/nonce_used"],
    ["POST /sessions", "/docs/api#create-session"],
    ["get /sessions", "/docs/api#list-sessions"],
    ["/access/check", "/docs/api#check-access"],
  ])("puts the page or operation %s first", (query, url) => {
    expect(findEntries(index, query)[0]?.id).toBe(url);
  });

  it.each([
    ["PORT", "/docs/reference/settings#port"],
    ["CORS", "/docs/reference/settings#cors_origins"],
    ["MONGODB_URI", "/docs/reference/settings#mongodb_uri"],
    ["TRUSTED_PROXIES", "/docs/reference/settings#trusted_proxies"],
    ["latchkey init", "/docs/reference/cli#latchkey-init"],
    ["bootstrap", "/docs/reference/cli#latchkey-bootstrap"],
    ["latchkey_requests_total", "/docs/reference/metrics#latchkey_requests_total"],
  ])("puts the row of %s first", (query, url) => {
    expect(findEntries(index, query)[0]?.id).toBe(url);
  });

  it.each([
    ["logging", "/docs/guides/run-in-production#logs"],
    ["zero downtime", "/docs/guides/rotate-a-key#without-downtime"],
    ["mTLS", "/docs/guides/protect-an-api-behind-a-gateway#client-certificates"],
    ["multi-tenant", "/docs/explanation/security-model#tenants"],
    ["IP allowlist", "/docs/guides/restrict-a-key#networks"],
    ["throttle", "/docs/reference/limits#rate-limits"],
    ["EADDRINUSE", "/docs/reference/settings#port"],
    ["webhooks", "/docs/reference/events#watch-events"],
    ["pagination", "/docs/reference/api#lists"],
    ["failover", "/docs/reference/settings#mongodb_uri"],
    ["unused", "/docs/api#list-applications"],
    ["lost", "/docs/guides/rotate-a-key#a-leaked-or-lost-key"],
    ["tenant", "/docs/explanation/security-model#tenants"],
    ["customer", "/docs/explanation/security-model#tenants"],
    ["limit", "/docs/reference/limits"],
    ["Go", "/docs/examples#go"],
    ["golang", "/docs/examples#go"],
    ["Python", "/docs/examples#python"],
  ])("finds %s, which the documentation calls otherwise", (query, url) => {
    expect(findEntries(index, query)[0]?.id).toBe(url);
  });

  it.each(["rotate", "backup", "idempotency key", "external id", "session", "key expired"])(
    "lists guides and tutorials for %s before the changelog, contributing and errors",
    (query) => {
      const urls = findEntries(index, query).map(({ id }) => id);
      const isGuide = (url: string) => /^\/docs\/(?:guides|tutorials)\//.test(url);
      const firstGuide = urls.findIndex(isGuide);
      expect(firstGuide).toBeGreaterThanOrEqual(0);
      const others = urls
        .slice(0, firstGuide)
        .filter((url) => /changelog|contributing|errors\//.test(url));
      expect(others).toEqual([]);
    },
  );

  it("knows a word of the documentation for each synonym", () => {
    for (const query of Object.keys(synonyms)) {
      expect([query, findEntries(index, query).length]).not.toEqual([query, 0]);
    }
  });

  it("finds parts with some of the words if none has all", () => {
    const found = findEntries(index, "python sdk for sessions on windows");
    expect(found.length).toBeGreaterThan(0);
    expect(findEntries(index, "xyzzy")).toEqual([]);
  });

  it("finds the words that others leave out, if there are no others", () => {
    expect(findEntries(index, "in").map(({ terms }) => terms)).toContainEqual(["init"]);
  });

  it("puts errors first for the text of their status", () => {
    expect(findEntries(index, "Forbidden")[0]?.id).toBe("/docs/errors/permission_denied");
  });

  it.each([401, 403, 409, 429])("puts the errors with the status %s first", (status) => {
    const codes = Object.keys(problemCatalogue) as ProblemCode[];
    const expected = codes.filter((code) => problemCatalogue[code].status === status);
    const found = findEntries(index, String(status)).slice(0, expected.length);
    expect(found.map(({ id }) => id).sort()).toEqual(expected.map(problemUri).sort());
  });

  it("does not find errors by the operations that return them", () => {
    const found = findEntries(index, "nonce").map(({ id }) => id);
    expect(found).toContain("/docs/errors/nonce_used");
    expect(found).not.toContain("/docs/errors/unsupported_media_type");
    expect(found).not.toContain("/docs/errors/body_too_large");
  });

  it("finds similar words only if there are no others", () => {
    const words = findEntries(index, "external id").flatMap(({ terms }) => terms);
    expect(words).toContain("external");
    expect(words).not.toContain("internal");
  });

  it("has no entry whose page or anchor is missing", () => {
    const urls = index.search(MiniSearch.wildcard).map(({ id }) => new URL(id, "http://site"));
    expect(urls.length).toBeGreaterThan(300);
    const missing = urls.filter(
      ({ pathname, hash }) =>
        !pages.has(pathname) || (hash !== "" && !hasAnchor(pathname, hash.slice(1))),
    );
    expect(missing).toEqual([]);
  });

  it("is less than 150 kB compressed", () => {
    expect(readFileSync(join(folder, `${name}.gz`)).length).toBeLessThan(150_000);
  });
});
