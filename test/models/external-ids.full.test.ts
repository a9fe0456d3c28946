import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { a, absent, b, create, extend, mortal, rename, withKey } from "./external-id-cases.js";
import { type ExternalIdOptions, externalIds } from "./external-ids.js";

const [first, retry] = [withKey(create(0, "a")), withKey(create(0, "a"))];
const three = [absent, absent, absent];

/** Only the two with the most states leave out the crash. */
it.each<[string, ExternalIdOptions]>([
  [
    "three applications are created",
    {
      applications: three,
      operations: [create(0, "a"), create(1, "a"), create(2, "a")],
      crashes: 0,
    },
  ],
  [
    "a delayed create is retried with the same id",
    {
      applications: [absent, absent],
      operations: [create(0, "a"), create(0, "a"), create(1, "a")],
    },
  ],
  [
    "two are created and its expired owner is extended",
    {
      applications: [mortal, absent, absent],
      operations: [extend(0, true), create(1, "a"), create(2, "a")],
      canExpire: true,
    },
  ],
  [
    "its owner is extended before and after its expiry",
    {
      applications: [mortal, absent],
      operations: [extend(0), extend(0, true), create(1, "a")],
      canExpire: true,
    },
  ],
  [
    "it is renamed along a chain of values",
    { applications: [a, b, absent], operations: [rename(0, "b"), rename(1, "c"), create(2, "a")] },
  ],
  [
    "a create with a key is retried beside another one",
    { applications: [absent, absent], operations: [first, retry, create(1, "a")] },
  ],
  [
    "a rename with a key is retried",
    {
      applications: [a, absent],
      operations: [withKey(rename(0, "b")), withKey(rename(0, "b")), create(1, "b")],
    },
  ],
  [
    "a retried create is renamed",
    {
      applications: [absent, absent],
      operations: [first, retry, rename(0, "b"), create(1, "a")],
      crashes: 0,
    },
  ],
])("an external id has one owner if %s", (_, options) => {
  expectToHold(externalIds(options));
});
