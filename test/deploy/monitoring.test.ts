import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { problemCatalogue } from "../../src/contract/problems.js";
import { useService } from "../support/service/service-process.js";
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
const metricsPage = readFileSync("docs/reference/metrics.md", "utf8");
const runbookPath = "docs/guides/respond-to-an-alert.md";
const runbook = readFileSync(runbookPath, "utf8");

const alertExpressions = alerts.map(({ expr }) => expr);
const queries: readonly { readonly expr: string }[] = [
  ...panels.flatMap(({ targets = [] }) => targets),
  ...dashboard.annotations.list,
];
const dashboardExpressions = queries.map(({ expr }) => expr);
const expressions = [...alertExpressions, ...dashboardExpressions];

const metricName = /\b(?:latchkey|process|nodejs)_[a-z0-9_]+\b/g;

/** The metric family of a name in an expression. */
const familyOf = (name: string) => name.replace(/(?<=_seconds)_bucket$/, "");

describe("the alerts and the dashboard", () => {
  const service = useService({ WORKERS: "2" });

  it("use metrics that a running service exposes", async () => {
    let exposed = "";
    // A worker without CPU time can miss a scrape.
    await until(async () => {
      const response = await fetch(`${service.url}/metrics`);
      exposed = await response.text();
      return response.ok;
    });
    const families = [...exposed.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    const usedMetrics = new Set(
      expressions
        .map((expression) => expression.replaceAll(/"[^"]*"/g, ""))
        .flatMap((expression) => expression.match(metricName) ?? [])
        .map(familyOf),
    );
    expect([...usedMetrics].filter((name) => !families.includes(name))).toEqual([]);
    expect(usedMetrics.size).toBeGreaterThan(15);
  });

  it("use labels that the reference lists for these metrics", () => {
    const labels = new Map(
      [...metricsPage.matchAll(/^\| (`latchkey_[^|]+) \|[^|]*\|([^|]*)\|/gm)].flatMap(
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

  it("use codes of the error catalogue", () => {
    const codes = expressions.flatMap((expression) =>
      [...expression.matchAll(/code=~?"([^"]+)"/g)].flatMap(([, names = ""]) => names.split("|")),
    );
    expect(codes.filter((code) => !(code in problemCatalogue))).toEqual([]);
    expect(codes).toContain("internal");
  });
});

describe("each alert", () => {
  const names = alerts.map(({ alert }) => alert);

  it("links to its section of the runbook, which has no other sections", () => {
    const headings = [...runbook.matchAll(/^## (Latchkey\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(names);
    for (const { alert, annotations } of alerts) {
      expect(annotations.runbook_url).toBe(`${runbookPath}#${alert.toLowerCase()}`);
    }
  });

  it("is tested, both firing and silent", () => {
    const { tests } = parse(readFileSync("deploy/prometheus/alerts.test.yaml", "utf8"));
    const tested = tests.map((test: { name: string }) => test.name);
    expect(tested).toEqual([...names, "healthy"]);
    const silent = tests
      .at(-1)
      .alert_rule_test.map(({ alertname }: { alertname: string }) => alertname);
    expect(silent).toEqual(names);
  });
});

describe("the dashboard", () => {
  it("queries the selected data source and has unique panel ids", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(dashboard.templating.list.map(({ name }: { name: string }) => name)).toEqual([
      "datasource",
      "job",
      "instance",
    ]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const sources = JSON.stringify(dashboard).match(/"uid":"(?!latchkey")[^"]*"/g) ?? [];
    expect(new Set(sources)).toEqual(new Set(['"uid":"$datasource"']));
  });

  it("queries only the selected instances", () => {
    for (const expression of dashboardExpressions) {
      const selectors =
        expression.match(/\b(?:latchkey|process|nodejs|up)[a-z0-9_]*\{[^}]*\}/g) ?? [];
      expect(selectors.length).toBeGreaterThan(0);
      for (const selector of selectors) {
        expect(selector).toContain('job="$job", instance=~"$instance"');
      }
    }
  });
});
