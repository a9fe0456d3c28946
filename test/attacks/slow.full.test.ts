import { connect as connectHttp2 } from "node:http2";
import { describe, expect, it } from "@jest/globals";
import { noTimeouts, useAttacked } from "../support/attacked.js";
import { endHeaders, frame, frameType, request } from "../support/http2-frames.js";
import { grpcHeaders } from "../support/http2-wire.js";
import { answerPings, openRawHttp2 } from "../support/raw-connection.js";
import { tlsEnvironment } from "../support/raw-tls.js";
import { useService } from "../support/service-for-file.js";
import {
  checkRpc,
  cutOffWithResponse,
  type SlowCaller,
  slowBodies,
  slowBodyHttp1,
  slowBodyHttp2,
  slowHeaders,
} from "./slow-callers.js";

const attackers = 5;

describe("where callers may be as slow as they like", () => {
  const patient = useAttacked(noTimeouts);
  const secure = useService({ ...noTimeouts, ...tlsEnvironment });

  it("nobody waits for those that are slow", async () => {
    await patient.during(async (others) => {
      const slow: SlowCaller[] = await Promise.all([
        ...Object.values(slowHeaders).map((begin) => begin(patient, secure)),
        ...Array.from({ length: attackers }, () => slowBodyHttp1(patient)),
        ...slowBodies.flatMap(([, path, headers]) =>
          Array.from({ length: attackers }, () => slowBodyHttp2(patient, path, headers)),
        ),
      ]);
      await others.areServed(50);
      // Others were served before the first of them was done.
      expect(slow.filter((caller) => !caller.isOpen())).toEqual([]);
      for (const caller of slow) {
        caller.hangUp();
      }
    });
  });
});

describe("where time is short", () => {
  const timeout = 1_000;
  const short = { HEADER_TIMEOUT: "1s", BODY_TIMEOUT: "1s", REQUEST_TIMEOUT: "24h" };
  const hasty = useAttacked(short);
  // Where a body has a day, only the time of headers can be what cuts them off.
  const slowBodiesToo = { ...short, BODY_TIMEOUT: "24h" };
  const hastyWithHeaders = useAttacked(slowBodiesToo);
  const secure = useService({ ...slowBodiesToo, ...tlsEnvironment });

  const begin = (name: string) => {
    const beginOne = slowHeaders[name] as (typeof slowHeaders)[string];
    return beginOne(hastyWithHeaders, secure);
  };

  it("headers that come slowly are cut off, and not before their time is up", async () => {
    const early = await hastyWithHeaders.during(async () => {
      const names = Object.keys(slowHeaders);
      const cutOffs = await Promise.all(
        names.map(async (what) => ({ what, ...(await (await begin(what)).over) })),
      );
      return cutOffs.filter(({ after }) => after < timeout);
    });
    expect(early).toEqual([]);
  });

  it("a body that comes slowly is refused with 408 and cut off over HTTP/1.1", async () => {
    await hasty.during(async () => {
      const slow = Array.from({ length: attackers }, () => cutOffWithResponse(hasty));
      for (const { after, answer } of await Promise.all(slow)) {
        expect(after).toBeGreaterThan(timeout);
        expect(answer).toBe("408");
      }
    });
  });

  it("a body that comes slowly is cut off over HTTP/2, whatever it is the body of", async () => {
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

  it("a stream whose messages are whole may be quiet for longer than a body may take", async () => {
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

  it("a connection with a stream may send other frames for longer than headers may take", async () => {
    const connection = openRawHttp2(hasty.port);
    answerPings(connection);
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
