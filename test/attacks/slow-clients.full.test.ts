import { connect as connectHttp2 } from "node:http2";
import { describe, expect, it } from "@jest/globals";
import { endHeaders, frame, frameType, request } from "../support/http/http2-frames.js";
import { grpcHeaders } from "../support/http/http2-wire.js";
import { openRawHttp2 } from "../support/http/raw-connection.js";
import { useService } from "../support/service/service-process.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";
import { tlsEnvironment } from "./support/raw-tls.js";
import {
  type SlowClient,
  sendSlowBodyUntilResponse,
  slowBodies,
  slowBodyHttp1,
  slowBodyHttp2,
  slowHeaders,
  streamCheckAccessPath,
} from "./support/slow-clients.js";

const attackers = 5;

describe("without timeouts", () => {
  const service = useAttackedService(noTimeouts);
  const secure = useService({ ...noTimeouts, ...tlsEnvironment });

  it("slow clients do not delay other clients", async () => {
    await service.runAttack(async (client) => {
      const slow: SlowClient[] = await Promise.all([
        ...Object.values(slowHeaders).map((start) => start(service, secure)),
        ...Array.from({ length: attackers }, () => slowBodyHttp1(service)),
        ...slowBodies.flatMap(([, path, headers]) =>
          Array.from({ length: attackers }, () => slowBodyHttp2(service, path, headers)),
        ),
      ]);
      await client.waitForResponses(50);
      // The legitimate client got its responses while all of them were still sending.
      expect(slow.filter(({ isOpen }) => !isOpen())).toEqual([]);
      for (const { disconnect } of slow) {
        disconnect();
      }
    });
  });
});

describe("with short timeouts", () => {
  const timeout = 1_000;
  const short = {
    HEADER_TIMEOUT: "1s",
    IDLE_TIMEOUT: "1s",
    BODY_TIMEOUT: "1s",
    REQUEST_TIMEOUT: "24h",
  };
  const service = useAttackedService(short);
  // With a body timeout of a day, only the header and idle timeouts can disconnect a client.
  const headersOnly = { ...short, BODY_TIMEOUT: "24h" };
  const headerService = useAttackedService(headersOnly);
  const secure = useService({ ...headersOnly, ...tlsEnvironment });

  const startSlowHeaders = (name: string) => {
    const start = slowHeaders[name] as (typeof slowHeaders)[string];
    return start(headerService, secure);
  };

  it("disconnects slow headers after their timeout and not before", async () => {
    const early = await headerService.runAttack(async () => {
      const names = Object.keys(slowHeaders);
      const disconnections = await Promise.all(
        names.map(async (what) => {
          const { disconnected } = await startSlowHeaders(what);
          return { what, ...(await disconnected) };
        }),
      );
      return disconnections.filter(({ after }) => after < timeout);
    });
    expect(early).toEqual([]);
  });

  it("refuses a slow body with 408 and disconnects over HTTP/1.1", async () => {
    await service.runAttack(async () => {
      const slow = Array.from({ length: attackers }, () => sendSlowBodyUntilResponse(service));
      for (const { after, status } of await Promise.all(slow)) {
        expect(after).toBeGreaterThan(timeout);
        expect(status).toBe("408");
      }
    });
  });

  it("resets a slow body over HTTP/2, whatever the request", async () => {
    const disconnections = await service.runAttack(() =>
      Promise.all(
        slowBodies.flatMap(([what, path, headers]) =>
          Array.from({ length: attackers }, async () => ({
            what,
            ...(await slowBodyHttp2(service, path, headers).disconnected),
          })),
        ),
      ),
    );
    expect(disconnections.filter(({ after }) => after < timeout)).toEqual([]);
  });

  it("keeps a stream with complete messages open longer than the body timeout", async () => {
    const session = connectHttp2(service.url);
    const stream = session.request(grpcHeaders(streamCheckAccessPath, service.firstKey));
    stream.on("error", () => {});
    stream.resume();
    await new Promise((resolve) => void session.ping(resolve));
    // Two clients with slow bodies that start later are disconnected first.
    await slowBodyHttp1(service).disconnected;
    await slowBodyHttp1(service).disconnected;
    expect(stream.closed).toBe(false);
    session.destroy();
  });

  it("keeps a connection with a stream and other frames open longer than the timeouts", async () => {
    const connection = openRawHttp2(service.port);
    const headers = grpcHeaders(streamCheckAccessPath, service.firstKey);
    const { ":method": _method, ":path": _path, ...rest } = headers;
    const fields = request(streamCheckAccessPath, rest as Record<string, string>, "POST");
    connection.write(frame(frameType.headers, endHeaders, 1, fields));
    const priority = frame(frameType.priority, 0, 1, Buffer.from([0, 0, 0, 3, 9]));
    const timer = setInterval(() => connection.write(priority), 100);
    // Two clients with slow headers that start later are disconnected first.
    await (await startSlowHeaders("over HTTP/2")).disconnected;
    await (await startSlowHeaders("over HTTP/2")).disconnected;
    clearInterval(timer);
    expect(connection.socket.destroyed).toBe(false);
    connection.socket.destroy();
  });
});
