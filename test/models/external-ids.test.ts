import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import * as cases from "./external-id-cases.js";
import { type ExternalIdBug, type ExternalIdOptions, externalIds } from "./external-ids.js";

const { a, absent, b, create, extend, mortal, remove, rename, twoCreates, update, withKey } = cases;
const retryAndRename = {
  applications: [absent, absent],
  operations: [withKey(create(0, "a")), withKey(create(0, "a")), rename(0, "b"), create(1, "a")],
};

describe("an external id", () => {
  it.each<[string, ExternalIdOptions]>([
    ["two applications are created", twoCreates],
    [
      "two are created and its owner is deleted",
      {
        applications: [a, absent, absent],
        operations: [create(1, "a"), create(2, "a"), remove(0)],
      },
    ],
    ["its owner is renamed there and back by two callers", cases.renameThereAndBack],
    [
      "two owners swap theirs",
      {
        applications: [a, b, absent],
        operations: [rename(0, "b"), rename(1, "a"), create(2, "a")],
      },
    ],
    [
      "its owner is renamed twice",
      { applications: [a, absent], operations: [rename(0, "b"), rename(0, "c"), create(1, "b")] },
    ],
    [
      "its owner expires during an extension and an update",
      {
        applications: [mortal, absent],
        operations: [extend(0), update(0), create(1, "a")],
        canExpire: true,
      },
    ],
    ["its expired owner is extended", cases.lateExtension],
  ])("has one owner if %s", (_, options) => {
    expectToHold(externalIds(options));
  });

  it.each<[ExternalIdBug, string, ExternalIdOptions]>([
    ["no fence", "oneOwner", twoCreates],
    ["does not look again after the fence", "oneOwner", twoCreates],
    ["takes over whatever the token of the claim", "oneOwner", cases.renameThereAndBack],
    ["reads its own version after the claim", "oneOwner", twoCreates],
    ["extends an expired application without a claim", "oneOwner", cases.lateExtension],
    ["removes tombstones early", "oneOwner", twoCreates],
    ["removes claims whose owner lacks the value", "oneOwner", twoCreates],
    ["refuses without reading its own application again", "notRefusedForOwnChange", retryAndRename],
  ])("finds the planted bug: %s", (bug, property, options) => {
    expectToViolate(externalIds({ ...options, bug }), property);
  });
});
