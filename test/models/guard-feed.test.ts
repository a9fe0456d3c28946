import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import { type GuardFeedBug, type GuardFeedOptions, guardFeed } from "./guard-feed.js";

const revokeAndExpire: GuardFeedOptions = {
  expiries: [9, 1],
  changes: [
    { record: 0, kind: "revoke" },
    { record: 1, kind: "expire now" },
  ],
};
const expireLater: GuardFeedOptions = {
  expiries: [9],
  changes: [{ record: 0, kind: "expire at 2" }],
  scans: 3,
  setbacks: 1,
};

describe("the feed of the guards", () => {
  it.each<[string, GuardFeedOptions]>([
    ["credentials are revoked and expire", revokeAndExpire],
    ["the clock is set back by a failover", expireLater],
    ["the oplog is overwritten", { ...revokeAndExpire, losses: 1 }],
  ])("is complete up to what it claims if %s", (_, options) => {
    expectToHold(guardFeed(options));
  });

  it.each<[GuardFeedBug, GuardFeedOptions]>([
    ["does not wait for the stream", revokeAndExpire],
    ["takes the time after the scan", revokeAndExpire],
    ["the scan takes the time again", { ...revokeAndExpire, setbacks: 1 }],
    ["scans only what has expired since the last scan", expireLater],
    ["restarts the stream at its end without a reset", { ...revokeAndExpire, losses: 1 }],
  ])("finds the planted bug: %s", (bug, options) => {
    expectToViolate(guardFeed({ ...options, bug }), "guardMissesNothing");
  });
});
