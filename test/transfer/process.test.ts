import { describe, it, jest } from "@jest/globals";
import { useTransfer } from "./transfer-commands.js";

jest.setTimeout(180_000);

const { expectMove, expectImportAfterKill } = useTransfer();

describe("a move from the embedded store to MongoDB", () => {
  it("is complete, with working keys, by file and by pipe", () =>
    expectMove("embedded", "mongodb"));
});

describe("an import into the embedded store", () => {
  it("is completed by the next one if it was killed", () => expectImportAfterKill("embedded"));
});
