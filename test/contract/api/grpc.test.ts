import { createGrpcApi } from "../../support/api/grpc.js";
import { describeApi } from "./suite.js";

describeApi({
  client: "grpc",
  stores: { lmdb: "essential cases", mongo: "every case" },
  statuses: "grpc",
  connect: ({ port }) => createGrpcApi(`127.0.0.1:${port}`),
});
