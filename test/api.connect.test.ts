import { createConnectTransport } from "@connectrpc/connect-web";
import { describeApi } from "./api-contract.js";
import { createConnectApi } from "./support/api-connect.js";

describeApi({
  client: "connect",
  stores: ["lmdb"],
  statuses: "grpc",
  connect: ({ url }) => createConnectApi(createConnectTransport({ baseUrl: url })),
});
