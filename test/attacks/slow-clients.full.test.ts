import { connect as connectHttp2 } from "node:http2";
import { describe, expect, it } from "@jest/globals";
import { endHeaders, frame, frameType, request } from "../support/http/http2-frames.js";
import { grpcHeaders } from "../support/http/http2-wire.js";
import { acknowledgePings, openRawHttp2 } from "../support/http/raw-connection.js";
import { useService } from "../support/service/service-process.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";
import { tlsEnvironment } from "./support/raw-tls.js";
import {
  checkRpc,
  type SlowClient,
  sendSlowBodyUntilResponse,
  slowBodies,
  slowBodyHttp1,
  slowBodyHttp2,
  slowHeaders,
} from "./support/slow-clients.js";

const attackers = 5;

describe("without timeouts for slow callers", () => {
  const patient = useAttackedService(noTimeouts);
  const secure = useService({ ...noTimeouts, ...tlsEnvironment });

  it("slow callers delay no other caller", async () => {
    await patient.during(async (others) => {
      const slow: SlowClient[] = await Promise.all([
        ...Object.values(slowHeaders).map((begin) => begin(patient, secure)),
        ...Array.from({ length: attackers }, () => slowBodyHttp1(patient)),
        ...slowBodies.flatMap(([, path, headers]) =>
          Array.from({ length: attackers }, () => slowBodyHttp2(patient, path, headers)),
        ),
      ]);
      await others.waitForResponses(50);
      // Others were served before the first of them was done.
      expect(slow.filter((caller) => !caller.isOpen())).toEqual([]);
      for (const caller of slow) {
        caller.hangUp();
      }
    });
  });
});

describe("with short timeouts", () => {
  const timeout = 1_000;
  const short = { HEADER_TIMEOUT: "1s", BODY_TIMEOUT: "1s", REQUEST_TIMEOUT: "24h" };
  const hasty = useAttackedService(short);
  // Where a body has a day, only the time of headers can be what cuts them off.
  const slowBodiesToo = { ...short, BODY_TIMEOUT: "24h" };
  const hastyWithHeaders = useAttackedService(slowBodiesToo);
  const secure = useService({ ...slowBodiesToo, ...tlsEnvironment });

  const begin = (name: string) => {
    const beginOne = slowHeaders[name] as (typeof slowHeaders)[string];
    return beginOne(hastyWithHeaders, secure);
  };

  it("disconnects slow headers after their timeout and not before", async () => {
    const early = await hastyWithHeaders.during(async () => {
      const names = Object.keys(slowHeaders);
      const cutOffs = await Promise.all(
        names.map(async (what) => ({ what, ...(await (await begin(what)).over) })),
      );
      return cutOffs.filter(({ after }) => after < timeout);
    });
    expect(early).toEqual([]);
  });

  it("refuses a slow body with 408 and disconnects over HTTP/1.1", async () => {
    await hasty.during(async () => {
      const slow = Array.from({ length: attackers }, () => sendSlowBodyUntilResponse(hasty));
      for (const { after, answer } of await Promise.all(slow)) {
        expect(after).toBeGreaterThan(timeout);
        expect(answer).toBe("408");
      }
    });
  });

  it("resets a slow body over HTTP/2, whatever the request", async () => {
    const cutOffs = await hasty.during(() =>
      Promise.all(
        slowBodies.flatMap(([what, path, headers]) =>
          Array.from({ length: attackers }, async () => ({
            what,
            ...(await slowBodyHttp2(hasty, path, headers).over),
          })),
        ),
      ),
    );
    expect(cutOffs.filter(({ after }) => after < timeout)).toEqual([]);
  });

  it("lets a stream with complete messages stay idle longer than the body timeout", async () => {
    const session = connectHttp2(hasty.url);
    const stream = session.request(grpcHeaders(checkRpc, hasty.firstKey));
    stream.on("error", () => {});
    stream.resume();
    await new Promise((resolve) => void session.ping(resolve));
    // Whoever is slow and came later is cut off first, twice.
    await slowBodyHttp1(hasty).over;
    await slowBodyHttp1(hasty).over;
    expect(stream.closed).toBe(false);
    session.destroy();
  });

  it("lets a connection with a stream send other frames longer than the header timeout", async () => {
    const connection = openRawHttp2(hasty.port);
    acknowledgePings(connection);
    const headers = grpcHeaders(checkRpc, hasty.firstKey);
    const { ":method": _method, ":path": _path, ...rest } = headers;
    const fields = request(checkRpc, rest as Record<string, string>, "POST");
    connection.write(frame(frameType.headers, endHeaders, 1, fields));
    const priority = frame(frameType.priority, 0, 1, Buffer.from([0, 0, 0, 3, 9]));
    const timer = setInterval(() => connection.write(priority), 100);
    // Whoever sends headers slowly and came later is cut off first, twice.
    await (await begin("over HTTP/2")).over;
    await (await begin("over HTTP/2")).over;
    clearInterval(timer);
    expect(connection.socket.destroyed).toBe(false);
    connection.socket.destroy();
  });
});
