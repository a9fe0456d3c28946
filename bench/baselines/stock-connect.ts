/** `@connectrpc/connect-node` as it comes, with methods that only return the same messages. */
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { fromBinary } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  AccessService,
  CheckAccessResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  ApplicationService,
} from "../../gen/latchkey/v1/application_service_pb.js";

const { PORT, HOST, PROTOCOL, ANSWERS = "{}" } = process.env;
const answers: Record<string, string> = JSON.parse(ANSWERS);
const bytesOf = (path: string) => Buffer.from(answers[path] ?? "", "base64");

const application = fromBinary(
  ApplicationSchema,
  bytesOf("/latchkey.v1.ApplicationService/GetApplicationByKey"),
);
const decision = fromBinary(
  CheckAccessResponseSchema,
  bytesOf("/latchkey.v1.AccessService/CheckAccess"),
);

const handler = connectNodeAdapter({
  routes: (router) => {
    router.service(ApplicationService, { getApplicationByKey: () => application });
    router.service(AccessService, { checkAccess: () => decision });
  },
});
const server = PROTOCOL === "http2" ? createHttp2Server(handler) : createServer(handler);
server.listen(Number(PORT), HOST);
