import type { IncomingHttpHeaders } from "node:http";
import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { HeadersView } from "../../../src/transport/http/headers.js";

const source: IncomingHttpHeaders = {
  ":method": "POST",
  ":path": "/secret",
  "content-type": "application/json",
  "svc-api-key": "a",
  "x-twice": ["a", "b"],
  "set-cookie": ["a=1", "b=2"],
  absent: undefined,
};

let view: HeadersView;

beforeEach(() => {
  view = new HeadersView(source);
});

describe("request headers", () => {
  it("are case-insensitive", () => {
    for (const name of ["svc-api-key", "SVC-API-KEY", "Svc-Api-Key"]) {
      expect(view.get(name)).toBe("a");
      expect(view.has(name)).toBe(true);
    }
  });

  it("are joined if they are repeated", () => {
    expect(view.get("x-twice")).toBe("a, b");
  });

  it("are null if absent", () => {
    for (const name of ["nothing", "absent"]) {
      expect(view.get(name)).toBeNull();
      expect(view.has(name)).toBe(false);
    }
  });

  it.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
    "do not include inherited properties: %s",
    (name) => {
      expect(view.get(name)).toBeNull();
      expect(view.has(name)).toBe(false);
    },
  );

  it("are listed without HTTP/2 pseudo-headers", () => {
    const names = ["content-type", "set-cookie", "svc-api-key", "x-twice"];
    expect([...view.keys()]).toEqual(names);
    expect([...view].map(([name]) => name)).toEqual(names);
    expect([...view.entries()]).toEqual([...view]);
    expect([...view.values()]).toEqual(["application/json", "a=1, b=2", "a", "a, b"]);
    const lines: string[] = [];
    view.forEach((value, name) => {
      lines.push(`${name}: ${value}`);
    });
    expect(lines).toEqual([...view].map(([name, value]) => `${name}: ${value}`));
  });
});

describe("a change to the headers", () => {
  it("is visible to every later read and does not change the request", () => {
    view.set("svc-api-key", "b");
    view.append("X-Twice", "c");
    view.delete("Content-Type");
    view.append("new", "d");
    expect(view.get("SVC-API-KEY")).toBe("b");
    expect(view.get("x-twice")).toBe("a, b, c");
    expect(view.has("content-type")).toBe(false);
    expect(view.get("new")).toBe("d");
    expect(source["svc-api-key"]).toBe("a");
    expect(source["content-type"]).toBe("application/json");
    view.append("set-cookie", "c=3");
    expect(view.getSetCookie()).toContain("c=3");
  });
});

it("HeadersView behaves like Headers for arbitrary requests", () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,12}$/);
  const value = fc.stringMatching(/^[!-~]([ -~]{0,10}[!-~])?$/);
  const headers = fc.dictionary(name, fc.oneof(value, fc.array(value, { minLength: 1 })));
  fc.assert(
    fc.property(headers, fc.array(name), (fields, others) => {
      const view = new HeadersView(fields);
      const expected = new Headers();
      for (const [key, text] of Object.entries(fields)) {
        for (const item of [text].flat()) {
          expected.append(key, item);
        }
      }
      expected.delete("set-cookie");
      view.delete("set-cookie");
      const fresh = new HeadersView(fields);
      for (const key of [...Object.keys(fields), ...others]) {
        if (key !== "set-cookie") {
          expect(fresh.get(key)).toBe(expected.get(key));
          expect(fresh.has(key)).toBe(expected.has(key));
        }
      }
      expect([...view]).toEqual([...expected]);
    }),
  );
});
