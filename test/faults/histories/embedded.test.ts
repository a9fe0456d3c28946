import { describe, expect, it } from "@jest/globals";
import { isFullSuite } from "../../support/jest/suite.js";
import { withTempFolder } from "../../support/service/run-latchkey.js";
import { checkRestarts, killsOfRound } from "./restarts.js";

const rounds = [killsOfRound, killsOfRound, killsOfRound].flat();

const cases = isFullSuite
  ? [
      { WORKERS: "1", kills: rounds, calls: 1_000 },
      { WORKERS: "2", kills: rounds, calls: 1_000 },
    ]
  : [{ WORKERS: "1", kills: killsOfRound.slice(2), calls: 200 }];

describe("two instances on one folder that are killed and restarted under load", () => {
  it.each(cases)(
    "give responses that one sequential order per record explains, with WORKERS=$WORKERS",
    ({ WORKERS, kills, calls }) =>
      withTempFolder(async (DATA_DIR) => {
        const store = { DATA_DIR, WORKERS };
        expect(await checkRestarts({ store, kills, calls })).toEqual([]);
      }),
    600_000,
  );
});
