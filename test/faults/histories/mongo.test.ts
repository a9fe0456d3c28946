import { describe, expect, it } from "@jest/globals";
import { isFullSuite } from "../../support/jest/suite.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { uri } from "../../support/mongo/uri.js";
import { checkRestarts, killsOfRound } from "./restarts.js";

const kills = isFullSuite ? [killsOfRound, killsOfRound].flat() : killsOfRound.slice(0, 1);
const calls = isFullSuite ? 1_000 : 200;

const mongo = useMongo();

describe("two instances on MongoDB that are killed and restarted under load", () => {
  it("give responses that one sequential order per record explains", async () => {
    const store = { MONGODB_URI: uri, MONGODB_DATABASE: mongo.createDatabase().databaseName };
    expect(await checkRestarts({ store, kills, calls })).toEqual([]);
  }, 600_000);
});
