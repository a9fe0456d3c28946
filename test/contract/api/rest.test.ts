import { createRestApi } from "../../support/api/rest.js";
import { describeApi } from "./suite.js";

describeApi({
  client: "rest",
  store: "lmdb",
  extent: "every case",
  statuses: "http",
  connect: ({ url }) => createRestApi(url),
});
