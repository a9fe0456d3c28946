import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { describeApi } from "./api-contract.js";
import { createConnectApi } from "./support/api-connect.js";

describeApi({
  client: "grpc-web",
  stores: ["lmdb"],
  statuses: "grpc",
  connect: ({ url }) => createConnectApi(createGrpcWebTransport({ baseUrl: url })),
});
