/** Lints the OpenAPI document on standard input and writes the findings as JSON. */
import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";

const config = await createConfig({
  extends: ["recommended-strict"],
  rules: {
    "component-name-unique": "error",
    "operation-4xx-problem-details-rfc7807": "error",
    "operation-description": "error",
    "operation-singular-tag": "error",
    "operation-tag-defined": "error",
    "parameter-description": "error",
    "path-params-defined": "error",
    "response-contains-header": { severity: "error", names: { "2XX": ["X-Request-Id"] } },
    "scalar-property-missing-example": "error",
    "spec-strict-refs": "error",
  },
});
const source = readFileSync(0, "utf8");
const problems = await lintFromString({ source, absoluteRef: "openapi.json", config });
const report = problems.map(({ ruleId, message, location }) => ({
  rule: ruleId,
  message,
  at: location[0]?.pointer,
}));
console.log(JSON.stringify(report, null, 2));
process.exitCode = report.length > 0 ? 1 : 0;
