import { describe, it } from "@jest/globals";
import { useTransfer } from "./transfer-commands.js";

const { expectMove, expectImportAfterKill } = useTransfer();

describe("a move from the embedded store to MongoDB", () => {
  it("is complete, with working keys, by file and by pipe", () =>
    expectMove("embedded", "mongodb"));
});

describe("an import into the embedded store", () => {
  it("is completed by the next one if it was killed", () => expectImportAfterKill("embedded"));
});
