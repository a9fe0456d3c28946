import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import {
  ApplicationService,
  CreateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { exchangeRaw, expectProblem, send } from "../support/http/http.js";
import { grpcHeaders, readResponse } from "../support/http/http2-wire.js";
import { openRaw } from "../support/http/raw-connection.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { until } from "../support/until.js";
import { useAttackedService } from "./support/attacked-service.js";

const service = useAttackedService({ CALLER_STREAM_LIMIT: "3", REQUEST_TIMEOUT: "24h" });

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const watchEventsPath = rpcPath(EventService.method.watchEvents);
const healthWatchPath = rpcPath(Health.method.watch);

const withKey = () => ({ "svc-api-key": service.firstKey });

describe("a request", () => {
  const manyHeaders = Array.from({ length: 101 }, (_, at) => `x-${at}: a`).join("\r\n");

  /** Sends a request 200 times with 10 workers. */
  function flood(sendOne: () => Promise<void>): Promise<void> {
    return service.runAttack(() => forEachConcurrently(10, Array.from({ length: 200 }), sendOne));
  }

  it("is refused if its URL is too long", async () => {
    const path = `/applications?name=${"a".repeat(8_192)}`;
    await flood(async () => {
      expectProblem(await send(service, path, { headers: withKey() }), 414, "url_too_long");
    });
    await flood(async () => {
      const headers = { ":method": "GET", ...withKey() };
      expect((await callRaw(service, path, { headers })).status).toBe(414);
    });
  });

  it("is refused if it has too many headers", async () => {
    await flood(async () => {
      const response = await exchangeRaw(
        service,
        `GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${manyHeaders}\r\n\r\n`,
      );
      expectProblem(response, 431, "headers_too_large");
    });
  });

  it("is refused if it has too many headers, over HTTP/2", async () => {
    const headers = Object.fromEntries(manyHeaders.split("\r\n").map((line) => line.split(": ")));
    await flood(async () => {
      const session = connectHttp2(service.url);
      const { code } = await readResponse(session.request({ ":path": "/healthz", ...headers }));
      expect(code).toBe(11);
      session.destroy();
    });
  });

  it("is refused if its JSON is nested too deeply, over REST and Connect", async () => {
    const body = `{"name":${"[".repeat(500_000)}${"]".repeat(500_000)}}`;
    await service.runAttack(async () => {
      for (let round = 0; round < 3; round++) {
        const headers = { ...withKey(), "content-type": "application/json" };
        const rest = await send(service, "/applications", { method: "POST", headers, body });
        expect(expectProblem(rest, 400, "invalid_request").detail).toContain("32 levels");
        const rpc = await send(service, getApplicationByKeyPath, { method: "POST", headers, body });
        expect(rpc.status).toBe(400);
      }
    });
  });

  it.each<[what: string, query: string]>([
    ["unknown names", Array.from({ length: 1_200 }, (_, at) => `n${at}=`).join("&")],
    ["a repeated name", "size=1&".repeat(1_000)],
    ["a repeated id", "id=a&".repeat(1_200)],
  ])("is refused at low cost if its query has %s", async (_what, query) => {
    await service.runAttack(async () => {
      for (let round = 0; round < 50; round++) {
        const response = await send(service, `/applications?${query}`, { headers: withKey() });
        expect(response.status).toBe(400);
      }
    });
  });
});

describe("rules with conditions", () => {
  /** Creates an application with rules and conditions, the last of which is invalid. */
  function createWithRules(rules: number, conditions: number) {
    const condition = { attribute: "id", operator: "equals", value: "a" };
    const message = create(CreateApplicationRequestSchema, {
      name: "a",
      type: "private",
      rules: Array.from({ length: rules }, (_, at) => ({
        priority: at + 1,
        transform: "mask",
        permissions: ["token:read"],
        conditions: Array.from({ length: conditions }, () => condition),
      })),
    });
    const last = message.rules.at(-1)?.conditions.at(-1);
    if (last) {
      last.attribute = "none";
    }
    const body = envelope(toBinary(CreateApplicationRequestSchema, message));
    return callRaw(service, createApplicationPath, { headers: withKey(), body });
  }

  it("are limited in total, whatever the limit of each list", async () => {
    await service.runAttack(async () => {
      for (let round = 0; round < 3; round++) {
        const response = await createWithRules(1_000, 50);
        expect(decodeURIComponent(response.headers["grpc-message"] ?? "")).toContain(
          "10000 list items",
        );
      }
    });
  });

  it("do not delay other clients at the maximum number", async () => {
    await service.runAttack(async () => {
      const response = await createWithRules(1_000, 8);
      expect(response.headers["grpc-message"]).toContain("and more");
    });
  });
});

describe("endless pipelined requests", () => {
  it("do not delay other clients", async () => {
    await service.runAttack(async (client) => {
      const connections = Array.from({ length: 8 }, () => openRaw(service.port));
      for (const { socket, write } of connections) {
        socket.resume();
        write("GET /applications/key HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100_000));
      }
      await client.waitForResponses(10);
      for (const { socket } of connections) {
        socket.destroy();
      }
    });
  });
});

describe("an invalid timeout", () => {
  const invalidTimeouts: readonly [name: string, value: string][] = [
    ["grpc-timeout", "99999999H"],
    ["grpc-timeout", "99999999999999999999S"],
    ["grpc-timeout", "-1S"],
    ["grpc-timeout", "1e9S"],
    ["grpc-timeout", ""],
    ["connect-timeout-ms", "9999999999"],
    ["connect-timeout-ms", "99999999999999999999"],
    ["connect-timeout-ms", "-1"],
    ["connect-timeout-ms", "NaN"],
  ];

  /** The status over gRPC, Connect and REST. */
  async function callWith(name: string, value: string) {
    const headers = { ...withKey(), [name]: value };
    const grpc = await callRaw(service, getApplicationByKeyPath, { headers, body: envelope("") });
    const type = { "content-type": "application/json" };
    const connect = await send(service, getApplicationByKeyPath, {
      method: "POST",
      headers: { ...headers, ...type },
      body: "{}",
    });
    const rest = await send(service, "/applications/key", { headers });
    return { grpc: grpc.headers["grpc-status"], connect: connect.status, rest: rest.status };
  }

  it("affects neither its caller nor other clients", async () => {
    await service.runAttack(() =>
      forEachConcurrently(
        10,
        Array.from({ length: 20 }, () => invalidTimeouts).flat(),
        async ([name, value]) => {
          const { grpc, connect, rest } = await callWith(name, value);
          const isExpected =
            ["0", "3", "4", "13"].includes(grpc ?? "") && [200, 400].includes(connect);
          expect([name, value, isExpected, rest]).toEqual([name, value, true, 200]);
        },
      ),
    );
  });
});

describe("the streams of one caller", () => {
  it.each<[what: string, path: string, key: () => string]>([
    ["with a key", watchEventsPath, () => service.firstKey],
    ["without a key, by its address", healthWatchPath, () => ""],
  ])("are limited: %s", async (_what, path, key) => {
    const session = connectHttp2(service.url);
    const open = () => {
      const stream = session.request(grpcHeaders(path, key()));
      stream.on("error", () => {});
      stream.resume();
      stream.end(envelope(""));
      return stream;
    };
    /** Whether a new stream is accepted. A refused stream has its status in the first headers. */
    const isAccepted = async () => {
      const stream = open();
      const [headers] = await once(stream, "response");
      return headers["grpc-status"] === undefined;
    };
    const streams = [open(), open(), open()];
    const refused = await readResponse(open());
    expect(refused.headers["grpc-status"]).toBe("8");
    const details = detailsOf({
      status: 200,
      headers: refused.headers as never,
      body: refused.body,
    });
    expect(details.info?.reason).toBe("TOO_MANY_STREAMS");
    expect(streams.map(({ closed }) => closed)).toEqual([false, false, false]);
    expect(await isAccepted()).toBe(false);
    streams[0]?.close();
    await until(isAccepted);
    session.destroy();
  });
});
