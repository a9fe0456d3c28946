import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { toTimestamp } from "../src/moments.js";

it("carries a moment as the library does", () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (moment) => {
      expect(toTimestamp(moment)).toStrictEqual(timestampFromMs(moment));
    }),
  );
});

it("carries no moment as nothing", () => {
  expect(toTimestamp(undefined)).toBeUndefined();
});
