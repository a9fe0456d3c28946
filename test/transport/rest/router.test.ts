import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createRouter, parseTemplate, splitPath } from "../../../src/transport/rest/router.js";

describe("a path template", () => {
  it("consists of literals and fields between slashes", () => {
    expect(parseTemplate("/applications/{id}/regenerate")).toEqual([
      { literal: "applications" },
      { field: "id" },
      { literal: "regenerate" },
    ]);
  });

  it.each(["applications", "", "/a//b", "/{}", "/{Id}", "/a{id}", "/{id", "/*", "/a?b", "/{a.b}"])(
    "is refused if it is %j",
    (template) => {
      expect(() => parseTemplate(template)).toThrow(/the path/);
    },
  );
});

describe("a request path", () => {
  it("ignores a trailing slash", () => {
    expect(splitPath("/applications/")).toEqual(splitPath("/applications"));
  });

  it("is decoded after it is split, so that an encoded slash does not separate segments", () => {
    expect(splitPath("/a%2Fb/c")).toEqual(["a/b", "c"]);
  });

  it("is undefined if it cannot be decoded", () => {
    expect(splitPath("/%E0%A4%A")).toBeUndefined();
    expect(splitPath("*")).toBeUndefined();
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.string(), (text) => void splitPath(text)));
  });
});

describe("router", () => {
  function createMatcher(...routes: [verb: string, template: string][]) {
    const router = createRouter<string>();
    for (const [verb, template] of routes) {
      router.add(verb, parseTemplate(template), `${verb} ${template}`);
    }
    return (verb: string, path: string) => router.match(verb, splitPath(path) ?? []);
  }

  const match = createMatcher(
    ["GET", "/applications"],
    ["POST", "/applications"],
    ["GET", "/applications/{id}"],
    ["GET", "/applications/key"],
    ["DELETE", "/applications/{id}"],
    ["POST", "/applications/{id}/regenerate"],
  );

  it("finds the route and the fields in its path", () => {
    expect(match("POST", "/applications/42/regenerate")).toEqual({
      route: "POST /applications/{id}/regenerate",
      fields: { id: "42" },
    });
  });

  it("prefers a literal to a field", () => {
    expect(match("GET", "/applications/key")).toMatchObject({ route: "GET /applications/key" });
    expect(match("GET", "/applications/keys")).toMatchObject({ fields: { id: "keys" } });
  });

  it("falls back to the field if the literal does not match further down", () => {
    expect(match("POST", "/applications/key/regenerate")).toMatchObject({ fields: { id: "key" } });
  });

  it("returns the allowed verbs of a path for any other verb", () => {
    expect(match("PATCH", "/applications")).toEqual({ allow: ["GET", "POST"] });
  });

  it("finds nothing for unknown paths", () => {
    for (const path of [
      "/",
      "/application",
      "/applications/1/2",
      "/applications//",
      "//applications",
    ]) {
      expect(match("GET", path)).toBeUndefined();
    }
  });

  it("refuses two routes for the same verb and path", () => {
    expect(() => createMatcher(["GET", "/a/{id}"], ["GET", "/a/{id}"])).toThrow("two methods");
    expect(() => createMatcher(["GET", "/a/{id}"], ["PUT", "/a/{name}"])).toThrow(
      "both {id} and {name}",
    );
  });
});
