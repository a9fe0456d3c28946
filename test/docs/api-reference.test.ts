import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { openapi } from "../../gen/openapi.js";
import { problemCatalogue } from "../../src/contract/problems.js";
import { textOf } from "./html.js";

interface Message {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly "x-required-permission"?: string;
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: Message;
  /** The first one is that of a success. */
  readonly responses: Readonly<Record<string, Message>>;
}

const page = readFileSync(join("dist", "web", "docs", "api.html"), "utf8");

/** The text of each entry of the page, without markup. */
const entries = page.split('<section class="entry').slice(1);

const operations = Object.entries(openapi.paths).flatMap(([path, verbs]) =>
  Object.entries(verbs as Record<string, Operation>).map(([verb, operation]) => {
    const id = operation.operationId.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return { ...operation, id, path, method: verb.toUpperCase() };
  }),
);

interface Schema {
  readonly type?: unknown;
  readonly $ref?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

const schemas: Readonly<Record<string, Schema>> = openapi.components.schemas;

/** The names of the fields at any depth. */
function fieldsOf({ $ref, items, properties = {} }: Schema): string[] {
  const referred = schemas[$ref?.split("/").at(-1) ?? ""];
  return [
    ...Object.keys(properties),
    ...[referred ?? [], items ?? [], Object.values(properties)].flat().flatMap(fieldsOf),
  ];
}

describe.each(operations)("the reference of $operationId", (operation) => {
  const { id, method, path, responses, parameters = [], requestBody } = operation;
  const entry = entries.find((html) => html.includes(` id="${id}"`)) ?? "";
  const text = textOf(entry);

  it("is in the navigation, with its method and path", () => {
    expect(page).toMatch(new RegExp(`<nav id="sidebar".*href="#${id}".*</nav>`));
    expect(text).toContain(`${method} ${path}`);
  });

  it("has a sample in each language", () => {
    const samples = entry.split('<p class="code-label">').slice(1).map(textOf);
    const programs = [
      ["curl", /curl( -X [A-Z]+)? 'http/],
      ["TypeScript", /await fetch\("http/],
      ["Go", new RegExp(`http.NewRequest\\("${method}", "http`)],
      ["Python", new RegExp(`method="${method}"`)],
    ] as const;
    expect(samples).toHaveLength(programs.length);
    const start = path.split("{", 1)[0] as string;
    for (const [index, [label, program]] of programs.entries()) {
      expect(samples[index]).toMatch(new RegExp(`^${label}`));
      expect(samples[index]).toMatch(program);
      expect(samples[index]).toContain(`http://localhost:8080${start}`);
    }
  });

  it("links each error to its page", () => {
    const all = JSON.stringify(responses).replaceAll(
      /"\$ref":"#\/components\/responses\/(\w+)"/g,
      (_, name) => JSON.stringify(openapi.components.responses[name as "Internal"]),
    );
    // Violations have codes, too.
    const codes = [...all.matchAll(/"code":"(\w+)"/g)]
      .map(([, code = ""]) => code)
      .filter((code) => code in problemCatalogue);
    const links = [...entry.matchAll(/href="\/docs\/errors\/(\w+)"/g)].map(([, code]) => code);
    expect(links.sort()).toEqual([...new Set(codes)].sort());
    expect(links).not.toHaveLength(0);
  });

  it("describes who may call it", () => {
    expect(text).toMatch(/Requires the |Any valid key is accepted|Needs no key/);
    expect(text).toContain(operation["x-required-permission"] ?? "");
  });

  it("describes each parameter and each field of the body and the response", () => {
    const [success] = Object.values(responses);
    const contents = [requestBody, success].flatMap(({ content = {} } = {}) =>
      Object.values(content),
    );
    const fields = contents.flatMap(({ schema }) => fieldsOf(schema));
    const described = [...entry.matchAll(/<p class="property-head"><code>([^<]+)</g)];
    const names = new Set(described.map(([, name]) => name));
    expect([...names].sort()).toEqual(
      [...new Set([...parameters.map(({ name }) => name), ...fields])].sort(),
    );
  });
});

it("shows a response to the sample that creates an application", () => {
  const entry = entries.find((html) => html.includes(' id="create-application"')) ?? "";
  const [, example = ""] = textOf(entry).split(/Response 201(?=\{)/);
  const { examples } = openapi.paths["/applications"].post.requestBody.content["application/json"];
  expect(example).not.toBe("");
  const [, response = ""] = /^(\{.*?\n\})/s.exec(example) ?? [];
  expect(JSON.parse(response)).toMatchObject({ ...examples.minimal.value, rules: [] });
  expect(JSON.parse(response)).not.toHaveProperty("expires_at");
});

it("has no entry for an operation that does not exist", () => {
  const ids = [...page.matchAll(/<section class="entry operation" aria-labelledby="([^"]*)"/g)];
  expect(ids.map(([, id]) => id).sort()).toEqual(operations.map(({ id }) => id).sort());
});
