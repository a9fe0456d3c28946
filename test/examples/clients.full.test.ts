import { expect, it } from "@jest/globals";
import { createRestApi } from "../support/api/rest.js";
import { describeWith } from "../support/jest/suite.js";
import { useService } from "../support/service/service-process.js";
import { useExamples } from "./example-process.js";

/** The first run downloads and builds dependencies, which takes minutes on a slow machine. */
const timeout = 10 * 60_000;

function testClient(name: string, title: string, invalid: string): void {
  const latchkey = useService();
  const runExample = useExamples();

  it(
    "creates, checks, lists and deletes, and prints a validation error",
    async () => {
      const { url, firstKey } = latchkey;
      const example = runExample(name, { SVC_API_KEY: firstKey, LATCHKEY_URL: url });
      const code = await example.ended();
      expect({ code, ...(code !== 0 && example.output) }).toEqual({ code: 0 });
      expect(example.output.stdout.trimEnd().split("\n")).toEqual([
        "I am Bootstrap, a management application.",
        `Created ${title}.`,
        "Its key may read tokens in /pci/: mask.",
        "Its key may not read tokens in /pii/: no_rule_matches.",
        `${invalid}: type: must be one of private, public, management`,
        "  reason: invalid_request",
        "  type: must be one of private, public, management",
        "Events: application.created.",
        `Deleted ${title}.`,
      ]);
      const remaining = await createRestApi(url).listApplications(firstKey);
      expect(remaining.data).toHaveLength(1);
    },
    timeout,
  );
}

describeWith(["go", "version"], "Go example", () =>
  testClient("go", "Go client", "InvalidArgument"),
);

describeWith(["python3", "-c", "import ensurepip, venv"], "Python example", () =>
  testClient("python", "Python client", "INVALID_ARGUMENT"),
);
