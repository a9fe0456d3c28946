import { beforeAll, describe, expect, it } from "@jest/globals";
import { openRaw, type RawConnection } from "../support/http/raw-connection.js";
import { useService } from "../support/service/service-process.js";
import { openRawTls, tlsEnvironment } from "./support/raw-tls.js";

/** A request times out long before its body. */
const timeouts = { REQUEST_TIMEOUT: "200ms", HEADER_TIMEOUT: "5s", BODY_TIMEOUT: "5s" };

const plain = useService(timeouts);
const secure = useService({ ...timeouts, ...tlsEnvironment });

/** Returns everything received until the server closes the connection. */
async function exchange(connection: RawConnection, start: string, rest: string): Promise<string> {
  connection.write(start);
  const timer = setInterval(() => connection.write(rest), 200);
  await connection.ended;
  clearInterval(timer);
  return connection.received().toString();
}

const requestHeaders = (key: string, length: string) =>
  `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
  `content-type: application/json\r\n${length}\r\n\r\n`;

/** Sends the request without and with TLS. */
function exchangeBoth(start: (key: string) => string, rest: string): Promise<string[]> {
  return Promise.all([
    exchange(openRaw(plain.port), start(plain.firstKey), rest),
    exchange(openRawTls(secure.port), start(secure.firstKey), rest),
  ]);
}

const statusLines = (text: string) => text.match(/HTTP\/1.1 \d+/g);

describe("a request whose response does not wait for its body", () => {
  let timedOut: string[];
  let slowRefused: string[];
  let malformedRefused: string[];

  beforeAll(async () => {
    [timedOut, slowRefused, malformedRefused] = await Promise.all([
      exchangeBoth((key) => requestHeaders(key, "content-length: 1000"), " "),
      exchangeBoth(() => requestHeaders("junk", "content-length: 1000"), " "),
      exchangeBoth(() => requestHeaders("junk", "transfer-encoding: chunked"), "no length\r\n"),
    ]);
  });

  it("gets one response when it times out, and the connection closes", () => {
    for (const text of timedOut) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 504"]);
      expect(text).toMatch(/\r\nconnection: close\r\n/i);
    }
  });

  it("gets one response when it is refused, however slowly its body arrives", () => {
    for (const text of slowRefused) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });

  it("gets one response when it is refused and its body is malformed", () => {
    for (const text of malformedRefused) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });
});
