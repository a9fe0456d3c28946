import { beforeAll, describe, expect, it } from "@jest/globals";
import { openRaw, type RawConnection } from "../support/http/raw-connection.js";
import { useService } from "../support/service/service-process.js";
import { openRawTls, tlsEnvironment } from "./support/raw-tls.js";

/** The time of a call is up long before that of its body. */
const times = { REQUEST_TIMEOUT: "200ms", HEADER_TIMEOUT: "5s", BODY_TIMEOUT: "5s" };

const clear = useService(times);
const secure = useService({ ...times, ...tlsEnvironment });

/** All that is answered until the server ends the connection. */
async function hear(connection: RawConnection, start: string, rest: string): Promise<string> {
  connection.write(start);
  const timer = setInterval(() => connection.write(rest), 200);
  await connection.ended;
  clearInterval(timer);
  return connection.received().toString();
}

const begin = (key: string, length: string) =>
  `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
  `content-type: application/json\r\n${length}\r\n\r\n`;

/** The same, once in clear and once over TLS. */
function hearBoth(start: (key: string) => string, rest: string): Promise<string[]> {
  return Promise.all([
    hear(openRaw(clear.port), start(clear.firstKey), rest),
    hear(openRawTls(secure.port), start(secure.firstKey), rest),
  ]);
}

const statusLines = (text: string) => text.match(/HTTP\/1.1 \d+/g);

describe("a request whose response does not wait for its body", () => {
  let late: string[];
  let slow: string[];
  let malformed: string[];

  beforeAll(async () => {
    [late, slow, malformed] = await Promise.all([
      hearBoth((key) => begin(key, "content-length: 1000"), " "),
      hearBoth(() => begin("junk", "content-length: 1000"), " "),
      hearBoth(() => begin("junk", "transfer-encoding: chunked"), "no length\r\n"),
    ]);
  });

  it("gets one response when it times out, and the connection closes", () => {
    for (const text of late) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 504"]);
      expect(text).toMatch(/\r\nconnection: close\r\n/i);
    }
  });

  it("gets one response when it is refused, however slowly its body arrives", () => {
    for (const text of slow) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });

  it("gets one response when it is refused and its body is malformed", () => {
    for (const text of malformed) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });
});
