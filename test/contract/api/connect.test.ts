import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { createConnectApi } from "../../support/api/connect.js";
import { describeApi } from "./suite.js";

describeApi({
  client: "connect",
  store: "lmdb",
  extent: "essential cases",
  statuses: "grpc",
  connect: ({ url }) => createConnectApi(createConnectTransport({ baseUrl: url })),
});

describeApi({
  client: "grpc-web",
  store: "lmdb",
  extent: "essential cases",
  statuses: "grpc",
  connect: ({ url }) => createConnectApi(createGrpcWebTransport({ baseUrl: url })),
});
