import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { guardFeed } from "./guard-feed.js";

it("is complete with three credentials, a failover and an overwritten oplog", () => {
  const changes = [
    { record: 0, kind: "revoke" },
    { record: 1, kind: "expire now" },
    { record: 2, kind: "revoke" },
  ] as const;
  expectToHold(guardFeed({ expiries: [9, 1, 2], changes, setbacks: 1, losses: 1 }));
});
