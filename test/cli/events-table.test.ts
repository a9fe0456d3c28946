import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { EventSchema } from "../../gen/latchkey/v1/event_service_pb.js";
import { eventColumns } from "../../src/cli/events.js";
import { formatTable, layoutTable } from "../../src/cli/table.js";
import { createColors } from "../../src/lib/terminal.js";

const colors = createColors(false);
const denied = create(EventSchema, {
  at: timestampFromMs(0),
  kind: "application.sessions_revoked",
  method: "latchkey.v1.ApplicationService/RegenerateApplicationKey",
  target: { name: "A web shop with a very long name", applicationId: "a" },
  actor: { name: "A backend with a very long name", applicationId: "b" },
  reason: "permission_denied",
  outcome: "denied",
});

describe("the table of events", () => {
  it.each([
    [100, "TIME KIND TARGET BY METHOD DETAILS"],
    [80, "TIME KIND TARGET BY"],
  ])("fits %d columns with %s", (width, titles) => {
    const followed = layoutTable(eventColumns(), [], { colors, width });
    const listed = formatTable(eventColumns(), [denied], { colors, width });
    const lines = [followed.header, followed.line(denied), ...listed.trimEnd().split("\n")];
    expect(lines.map(({ length }) => length <= width)).toEqual(lines.map(() => true));
    for (const header of [lines[0], lines[2]]) {
      expect(header?.split(/ +/).join(" ")).toBe(titles);
    }
  });

  it("shows the method without its service", () => {
    expect(formatTable(eventColumns(), [denied], { colors })).toContain(
      " RegenerateApplicationKey  permission_denied",
    );
  });
});
