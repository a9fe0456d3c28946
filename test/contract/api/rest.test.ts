import { createRestApi } from "../../support/api/rest.js";
import { describeApi } from "./suite.js";

describeApi({
  client: "rest",
  stores: { lmdb: "every case", mongo: "essential cases" },
  statuses: "http",
  connect: ({ url }) => createRestApi(url),
});
