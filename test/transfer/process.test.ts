import { describe, it, jest } from "@jest/globals";
import { useTransfer } from "./transfer-commands.js";

jest.setTimeout(180_000);

const { expectMove, expectFinishedImport } = useTransfer();

describe("an installation that is moved from embedded to mongodb", () => {
  it("is there whole, with keys that work, by file and by pipe", () =>
    expectMove("embedded", "mongodb"));
});

describe("an import into the embedded store", () => {
  it("that is killed halfway is finished by the next", () => expectFinishedImport("embedded"));
});
