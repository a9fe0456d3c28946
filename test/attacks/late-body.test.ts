import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { whileServed } from "../support/good-client.js";
import { openRaw, type RawConnection } from "../support/raw-connection.js";
import { openRawTls, tlsEnvironment } from "../support/raw-tls.js";
import { startServer, type TestServer } from "../support/server.js";

/** The time of a call is up before that of its body, as it is by default. */
const times = { REQUEST_TIMEOUT: "500ms", HEADER_TIMEOUT: "3s", BODY_TIMEOUT: "3s" };

/** How long it is waited for a second answer, in milliseconds. */
const patience = 8_000;

let clear: TestServer;
let secure: TestServer;
let key: string;

beforeAll(async () => {
  clear = await startServer("lmdb", { environment: times });
  const { store } = clear;
  secure = await startServer("lmdb", { environment: { ...times, ...tlsEnvironment }, store });
  ({ key } = await clear.createTenant());
});

afterAll(async () => {
  await secure.close();
  await clear.close();
});

/** All that is answered until the connection ends, or is long overdue. */
async function hear(connection: RawConnection, start: string, rest: string): Promise<string> {
  const { socket, write, ended, received } = connection;
  write(start);
  const timer = setInterval(() => write(rest), 200);
  const late = setTimeout(() => socket.destroy(), patience);
  await ended;
  clearInterval(timer);
  clearTimeout(late);
  return received().toString();
}

/** The same, once in clear and once over TLS, while others are served. */
function hearBoth(start: string, rest: string): Promise<string[]> {
  return whileServed({ port: clear.port, firstKey: key }, () => {
    const connections = [openRaw(clear.port), openRawTls(secure.port)];
    return Promise.all(connections.map((connection) => hear(connection, start, rest)));
  });
}

const begin = (withKey: string, length: string) =>
  `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${withKey}\r\n` +
  `content-type: application/json\r\n${length}\r\n\r\n`;

const statusLines = (text: string) => text.match(/HTTP\/1.1 \d+/g);

describe("a request whose answer does not wait for its body", () => {
  it("has one answer where its time is up, with which the connection ends", async () => {
    for (const text of await hearBoth(begin(key, "content-length: 1000"), " ")) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 504"]);
      expect(text).toMatch(/\r\nconnection: close\r\n/i);
    }
  });

  it("has one answer where it is refused, however slowly its body comes", async () => {
    for (const text of await hearBoth(begin("junk", "content-length: 1000"), " ")) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });

  it("has one answer where it is refused, and its body is malformed", async () => {
    const start = begin("junk", "transfer-encoding: chunked");
    for (const text of await hearBoth(start, "no length\r\n")) {
      expect(statusLines(text)).toEqual(["HTTP/1.1 401"]);
    }
  });
});
