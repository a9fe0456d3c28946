import { readFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { optionalSettings } from "../../src/cli/settings.js";
import { definitions } from "../../src/config/definitions.js";
import { type ProblemCode, problemCatalogue } from "../../src/contract/problems.js";

describe("docs/reference/settings.md", () => {
  const page = readFileSync("docs/reference/settings.md", "utf8");
  const names = Object.keys(definitions);

  it("lists every setting that the service reads, and no other", () => {
    const documented = [...page.matchAll(/^\| (`[A-Z0-9_`, ]+) \|/gm)].flatMap(([, names = ""]) =>
      names.match(/[A-Z0-9_]+/g),
    );
    expect([...documented].sort()).toEqual(names.toSorted());
  });

  it("lists the settings without an option: the pepper and the limits", () => {
    const [, limits = ""] = page.split("\n## Rate limits\n");
    const listed = [...limits.matchAll(/^\| `([A-Z0-9_]+)`/gm)].map(([, name]) => name);
    const optional: readonly string[] = optionalSettings;
    const without = names.filter((name) => !optional.includes(name));
    expect(without.sort()).toEqual([...listed, "KEY_PEPPER"].sort());
  });
});

describe("docs/reference/errors.md", () => {
  it("lists every error code with its HTTP and gRPC status, and no other", () => {
    const page = readFileSync("docs/reference/errors.md", "utf8");
    expect(page).toContain(`"title": "${problemCatalogue.invalid_request.title}"`);
    const rows = [...page.matchAll(/\| \[`([a-z_]+)`\]\(#\1\) \| (\d{3}) \| ([A-Z_]*) ?\|/g)];
    const documented = Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)]));
    const expected = Object.entries(problemCatalogue).map(([code, { status }]) => [code, status]);
    expect(documented).toEqual(Object.fromEntries(expected));
    for (const [, code, , grpcStatus] of rows) {
      const { grpc } = problemCatalogue[code as ProblemCode];
      const name = Code[grpc].replaceAll(/(?<=.)([A-Z])/g, "_$1").toUpperCase();
      expect(["", name, name.replace("CANCELED", "CANCELLED")]).toContain(grpcStatus);
    }
  });
});
