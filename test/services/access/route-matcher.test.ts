import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type GatewayRoute,
  GatewayRouteSchema,
} from "../../../gen/latchkey/v1/gateway_service_pb.js";
import { compileRoutes } from "../../../src/services/access/gateways/route-matcher.js";

type RouteInit = MessageInitShape<typeof GatewayRouteSchema>;

const toRoute = (route: RouteInit): GatewayRoute =>
  create(GatewayRouteSchema, { permission: "token:read", ...route });

/** Returns what a request needs by one route. */
function match(route: RouteInit, path: string, { host = "api.example.com", method = "GET" } = {}) {
  return compileRoutes([toRoute(route)])({ host, method, path });
}

const isMatch = (...args: Parameters<typeof match>) => match(...args) !== undefined;

describe("the path of a route", () => {
  it.each([
    ["/", "/"],
    ["/", "/?query"],
    ["/cards", "/cards"],
    ["/cards", "/cards/"],
    ["/cards/", "/cards"],
    ["/cards", "/cards?next=/admin"],
    ["/cards", "/c%61rds"],
    ["/cards/{card}", "/cards/card-4242"],
    ["/cards/{card}", "/cards/a%20b"],
    ["/cards/{card...}", "/cards"],
    ["/cards/{card...}", "/cards/"],
    ["/cards/{card...}", "/cards/a/b/c"],
    ["/{all...}", "/"],
    ["/{all...}", "/a/b"],
    ["/größe", "/gr%C3%B6%C3%9Fe"],
    ["/cards/{card}", "/cards/..a"],
  ])("%s matches %s", (path, requested) => {
    expect(isMatch({ path }, requested)).toBe(true);
  });

  it.each([
    ["/", "/cards"],
    ["/cards", "/cards/card-4242"],
    ["/cards", "/CARDS"],
    ["/cards", "cards"],
    ["/cards", "http://localhost/cards"],
    ["/cards", "*"],
    ["/cards", ""],
    ["/cards/{card}", "/cards/"],
    ["/cards/{card}", "/cards/a/b"],
    ["/cards/{card...}", "/cardsx"],
    ["/cards/{card}/{part...}", "/cards"],
  ])("%s does not match %s", (path, requested) => {
    expect(isMatch({ path }, requested)).toBe(false);
  });

  it.each([
    ...["//", "//cards", "/cards//x", "/cards/x//", "/./cards", "/cards/.", "/cards/..", "/.."],
    ...["/cards/../admin", "/cards/%2e%2e/admin", "/cards/%2E%2e", "/cards/.%2e/admin"],
    ...["/cards/..%2fadmin", "/cards%2Fx", "/cards/..%5cadmin", "/cards\\x", "/cards/..\\admin"],
    ...["/cards/%252e%252e/admin", "/cards/%2525", "/cards/..;/admin", "/cards/..;x=1/admin"],
    ...[
      "/;/cards",
      "/cards/;x",
      "/cards/.;",
      "/cards/x;y",
      "/cards/x%3by",
      "/cards/%00",
      "/cards/%0a",
      "/cards/%7f",
      "/cards/#/../../admin",
      "/cards./x",
      "/cards%20/x",
    ],
    ...["/cards/%", "/cards/%zz", "/cards/%ff", "/cards/%c0%ae%c0%ae", "/cards/\u0001"],
    ...["/cards/gr\u00f6\u00dfe", "/cards/gr\u00c3\u00b6\u00c3\u009fe"],
  ])("never matches %j, which an upstream could read as another path", (requested) => {
    expect(isMatch({ path: "/{all...}" }, requested)).toBe(false);
  });

  it("never matches a path that a URL parser reads as another one", () => {
    const piece = fc.constantFrom(
      ...[
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2E",
        "%2f",
        "%5c",
        "\\",
        ";",
        "%",
        "%25",
        "a",
        "cards",
        "?",
        "#",
      ],
    );
    const path = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`);
    fc.assert(
      fc.property(path, (requested) => {
        const requirement = match({ path: "/{all...}", tokenId: "/{all}" }, requested);
        if (requirement) {
          const { pathname } = new URL(requested, "http://localhost");
          const normalized = decodeURIComponent(pathname).replace(/(.)\/$/, "$1");
          expect(requirement.tokenId).toBe(normalized);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("gives its named segments to the container and the token id", () => {
    const path = "/customers/{customer}/cards/{card...}";
    const templates = { container: "/pci/{customer}/{customer}/", tokenId: "{card}" };
    expect(match({ path, ...templates }, "/customers/an%20na/cards/a/b?c")).toEqual({
      permission: "token:read",
      container: "/pci/an na/an na/",
      tokenId: "a/b",
    });
  });

  it("gives every segment as it is, even with characters that patterns use", () => {
    const segment = fc
      .string({ minLength: 1, maxLength: 20, unit: "grapheme" })
      .filter((text) => !/[. ]$|[/\\%;]|\p{C}/u.test(text));
    fc.assert(
      fc.property(segment, (text) => {
        const route = { path: "/cards/{card}", tokenId: "{card}" };
        const found = match(route, `/cards/${encodeURIComponent(text)}`);
        expect(found?.tokenId).toBe(text);
      }),
    );
  });
});

describe("the host and methods of a route", () => {
  it.each([
    ["api.example.com", "api.example.com", true],
    ["api.example.com", "API.Example.com:8080", true],
    ["API.example.com", "api.example.com.", true],
    ["api.example.com", "example.com", false],
    ["api.example.com", "xapi.example.com", false],
    ["api.example.com", "", false],
    ["*.example.com", "api.example.com", true],
    ["*.example.com", "a.b.example.com:443", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", ".example.com", false],
    ["*.example.com", "evilexample.com", false],
    ["*.example.com", "api.example.com.evil.test", false],
  ])("%s and the host %j: %s", (host, requested, expected) => {
    expect(isMatch({ path: "/", host }, "/", { host: requested })).toBe(expected);
  });

  it.each([
    "user@api.example.com",
    "user:password@api.example.com:443",
    "api.example.com, shop.example.com",
    "api.example.com/x",
    "api.example.com%00",
    "api example.com",
    "api..example.com",
    "api.example.com..",
    ".api.example.com",
    ".",
    "[::1]",
    "[2001:db8::1]:443",
    "2001:db8::1",
    "\u212Aey.example.com",
    "äpi.example.com",
  ])("never match the host %j, which an upstream could read as another one", (requested) => {
    for (const host of [undefined, "api.example.com", "*.example.com", "key.example.com"]) {
      expect(isMatch({ path: "/", ...(host && { host }) }, "/", { host: requested })).toBe(false);
    }
  });

  it("match only hosts that consist of the characters of names", () => {
    const host = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.domain());
    fc.assert(
      fc.property(host, (requested) => {
        const isName = /^[a-z0-9._-]+$/.test(requested.toLowerCase().replace(/:\d*$/, ""));
        expect(isName || !isMatch({ path: "/" }, "/", { host: requested })).toBe(true);
      }),
    );
  });

  it("compare methods as they are", () => {
    const route = { path: "/", methods: ["GET", "PATCH"] };
    const methods = ["GET", "PATCH", "get", "POST", "", "GETX"];
    expect(methods.filter((method) => isMatch(route, "/", { method }))).toEqual(["GET", "PATCH"]);
    const sent = ["GET", "PATCH", "POST", "GETX"];
    expect(methods.filter((method) => isMatch({ path: "/" }, "/", { method }))).toEqual(sent);
  });
});

describe("several routes", () => {
  const segments = ["a", "b", "{x}", "{y}"];
  const path = fc
    .array(fc.constantFrom(...segments), { maxLength: 3 })
    .map((parts) => `/${[...new Set(parts)].join("/")}`);
  const routes = fc
    .array(fc.record({ path, methods: fc.subarray(["GET", "POST"]) }), { maxLength: 5 })
    .map((list) =>
      list.map((route, index) => toRoute({ ...route, permission: `token:route${index}` })),
    );
  const request = fc.record({
    host: fc.constant("localhost"),
    method: fc.constantFrom("GET", "POST", "PUT"),
    path: fc
      .array(fc.constantFrom("a", "b", "c"), { maxLength: 3 })
      .map((it) => `/${it.join("/")}`),
  });

  it("decide by the first one that matches, and by none if none does", () => {
    fc.assert(
      fc.property(routes, request, (list, requested) => {
        const first = list.find((route) => compileRoutes([route])(requested));
        expect(compileRoutes(list)(requested)?.permission).toBe(first?.permission);
      }),
    );
  });
});

describe("a route that is not valid", () => {
  it.each<[RouteInit, string]>([
    [{ path: "/{a...}/b" }, "routes[0].path: {a...} must be the last segment"],
    [{ path: "/{a}/{a}" }, "routes[0].path: names {a} twice"],
    [{ path: "/a//b" }, 'routes[0].path: has the segment ""'],
    [{ path: "/a/../b" }, 'routes[0].path: has the segment ".."'],
    [{ path: "/a*" }, 'routes[0].path: has the segment "a*"'],
    [{ path: "/a%20b" }, 'routes[0].path: has the segment "a%20b"'],
    [{ path: "/{A}" }, 'routes[0].path: has the segment "{A}"'],
    [{ path: "/x{a}" }, 'routes[0].path: has the segment "x{a}"'],
    [{ path: "/a", container: "/{b}/" }, "routes[0].container: {b} is not a named segment"],
    [{ path: "/{a}", tokenId: "{a" }, "routes[0].token_id: {a is not a named segment"],
    [{ path: "/{a}", tokenId: "a}" }, "routes[0].token_id: } is not a named segment"],
    [{ path: "/{a...}", tokenId: "{a...}" }, "routes[0].token_id: {a...} is not a named segment"],
  ])("is refused: %j", (route, message) => {
    expect(() => compileRoutes([toRoute(route)])).toThrow(message);
  });
});
