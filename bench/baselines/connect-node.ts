/** Unmodified `@connectrpc/connect-node` with methods that return constant messages. */
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

const { PORT, HOST, PROTOCOL, RESPONSES = "{}" } = process.env;
const responses: Record<string, string> = JSON.parse(RESPONSES);
const decode = (path: string) => Buffer.from(responses[path] ?? "", "base64");

const application = fromBinary(
  ApplicationSchema,
  decode("/latchkey.v1.ApplicationService/GetApplicationByKey"),
);
const decision = fromBinary(
  CheckAccessResponseSchema,
  decode("/latchkey.v1.AccessService/CheckAccess"),
);

const handler = connectNodeAdapter({
  routes: (router) => {
    router.service(ApplicationService, { getApplicationByKey: () => application });
    router.service(AccessService, { checkAccess: () => decision });
  },
});
const server = PROTOCOL === "http2" ? createHttp2Server(handler) : createServer(handler);
server.listen(Number(PORT), HOST);
