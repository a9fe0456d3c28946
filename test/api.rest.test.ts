import { describeApi } from "./api-contract.js";
import { createRestApi } from "./support/api-rest.js";

describeApi({
  client: "rest",
  stores: { lmdb: "every case", mongo: "essential cases" },
  statuses: "http",
  connect: ({ url }) => createRestApi(url),
});
