import { describeApi } from "./api-contract.js";
import { createRestApi } from "./support/api-rest.js";

describeApi({ client: "rest", statuses: "http", connect: ({ url }) => createRestApi(url) });
