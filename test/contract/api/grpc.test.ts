import { createGrpcApi } from "../../support/api/grpc.js";
import { isFullSuite } from "../../support/jest/suite.js";
import { describeApi } from "./suite.js";

describeApi({
  client: "grpc",
  store: "mongo",
  extent: isFullSuite ? "every case" : "essential cases",
  statuses: "grpc",
  connect: ({ port }) => createGrpcApi(`127.0.0.1:${port}`),
});
