import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { grpcHeaders, readResponse } from "../support/http/http2-wire.js";
import { envelope } from "../support/http/raw-grpc.js";
import { useService } from "../support/service/service-process.js";
import { noTimeouts } from "./support/attacked-service.js";
import { tlsEnvironment } from "./support/raw-tls.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const service = useService({ ...noTimeouts, ...tlsEnvironment });

describe("thousands of simultaneous unauthenticated calls over TLS", () => {
  it("all get a response", async () => {
    const ca = readFileSync(tlsEnvironment.TLS_CERT);
    const sessions = Array.from({ length: 60 }, () => connect(service.url, { ca }));
    const body = envelope("");
    const responses = await Promise.all(
      sessions.flatMap((session) =>
        Array.from({ length: 100 }, () => {
          const stream = session.request(grpcHeaders(getApplicationByKeyPath, ""));
          stream.end(body);
          return readResponse(stream);
        }),
      ),
    );
    for (const session of sessions) {
      session.destroy();
    }
    expect(new Set(responses.map(({ headers }) => headers["grpc-status"]))).toEqual(
      new Set([String(Code.Unauthenticated)]),
    );
  });
});
