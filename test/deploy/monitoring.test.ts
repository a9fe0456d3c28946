import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { problemCatalogue } from "../../src/contract/problems.js";
import { useService } from "../support/service-for-file.js";
import { until } from "../support/until.js";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const alerts: readonly Alert[] = parse(
  readFileSync("deploy/prometheus/alerts.yaml", "utf8"),
).groups.flatMap(({ rules }: { rules: readonly Alert[] }) => rules);
const dashboard = JSON.parse(readFileSync("deploy/grafana/latchkey.json", "utf8"));
const panels: readonly Panel[] = dashboard.panels;
const operations = readFileSync("docs/operations.md", "utf8");

const alertExpressions = alerts.map(({ expr }) => expr);
const shown: readonly { readonly expr: string }[] = [
  ...panels.flatMap(({ targets = [] }) => targets),
  ...dashboard.annotations.list,
];
const shownExpressions = shown.map(({ expr }) => expr);
const expressions = [...alertExpressions, ...shownExpressions];

const metricName = /\b(?:latchkey|process|nodejs)_[a-z0-9_]+\b/g;

/** The name of the family that a name in an expression is of. */
const familyOf = (name: string) => name.replace(/(?<=_seconds)_bucket$/, "");

describe("alerts and dashboard", () => {
  const service = useService({ WORKERS: "2" });

  it("name metrics that a running service tells", async () => {
    let told = "";
    // Workers that wait for a core may be too late for a scrape.
    await until(async () => {
      const answer = await fetch(`${service.url}/metrics`);
      told = await answer.text();
      return answer.ok;
    });
    const families = [...told.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    const named = new Set(
      expressions
        .map((expression) => expression.replaceAll(/"[^"]*"/g, ""))
        .flatMap((expression) => expression.match(metricName) ?? [])
        .map(familyOf),
    );
    expect([...named].filter((name) => !families.includes(name))).toEqual([]);
    expect(named.size).toBeGreaterThan(15);
  });

  it("name labels that these metrics have", () => {
    const labels = new Map(
      [...operations.matchAll(/^\| (`latchkey_[^|]+) \| ([^|]*) \|/gm)].flatMap(
        ([, names = "", cell = ""]) =>
          (names.match(metricName) ?? []).map(
            (name) => [name, cell.match(/\w+/g) ?? []] as [string, string[]],
          ),
      ),
    );
    for (const expression of expressions) {
      for (const [, name = "", selector = ""] of expression.matchAll(
        /(latchkey_\w+)\{([^}]*)\}/g,
      )) {
        const own = [...(labels.get(familyOf(name)) ?? []), "job", "instance", "le"];
        const used = [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = ""]) => label);
        expect([name, used.filter((label) => !own.includes(label))]).toEqual([name, []]);
      }
    }
  });

  it("name codes that calls can end with", () => {
    const codes = expressions.flatMap((expression) =>
      [...expression.matchAll(/code=~?"([^"]+)"/g)].flatMap(([, names = ""]) => names.split("|")),
    );
    expect(codes.filter((code) => !(code in problemCatalogue))).toEqual([]);
    expect(codes).toContain("internal");
  });
});

describe("each alert", () => {
  const names = alerts.map(({ alert }) => alert);

  it("leads to what the guide tells about it, and the guide tells of no others", () => {
    const headings = [...operations.matchAll(/^### (Latchkey\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(names);
    for (const { alert, annotations } of alerts) {
      expect(annotations.runbook_url).toBe(`docs/operations.md#${alert.toLowerCase()}`);
    }
  });

  it("is tried, both when it should come and when all is well", () => {
    const { tests } = parse(readFileSync("deploy/prometheus/alerts.test.yaml", "utf8"));
    const tried = tests.map((test: { name: string }) => test.name);
    expect(tried).toEqual([...names, "all is well"]);
    const quiet = tests
      .at(-1)
      .alert_rule_test.map(({ alertname }: { alertname: string }) => alertname);
    expect(quiet).toEqual(names);
  });
});

describe("the dashboard", () => {
  it("asks the data source that is chosen, and gives each panel a number of its own", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(dashboard.templating.list.map(({ name }: { name: string }) => name)).toEqual([
      ...["datasource", "job", "instance"],
    ]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const chosen = JSON.stringify(dashboard).match(/"uid":"(?!latchkey")[^"]*"/g) ?? [];
    expect(new Set(chosen)).toEqual(new Set(['"uid":"$datasource"']));
  });

  it("asks only of the instances that are chosen", () => {
    for (const expression of shownExpressions) {
      const selectors =
        expression.match(/\b(?:latchkey|process|nodejs|up)[a-z0-9_]*\{[^}]*\}/g) ?? [];
      expect(selectors.length).toBeGreaterThan(0);
      for (const selector of selectors) {
        expect(selector).toContain('job="$job", instance=~"$instance"');
      }
    }
  });
});
