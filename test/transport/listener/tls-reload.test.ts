import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { copyFile, mkdir, rename, symlink, unlink, writeFile } from "node:fs/promises";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { Agent, type AgentOptions, request } from "node:https";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Environment } from "../../../src/config/settings.js";
import { callRaw } from "../../support/http/raw-grpc.js";
import { withTempFolder } from "../../support/service/process.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { useServices } from "../../support/service/service-process.js";
import { until } from "../../support/until.js";

// All are valid for a hundred years. The two for localhost are self-signed and have different key types.
const fixture = (name: string) => join("test/fixtures", name);
const ca = [readFileSync(fixture("localhost.crt")), readFileSync(fixture("localhost-renewed.crt"))];
const serialOf = (name: string) =>
  new X509Certificate(readFileSync(fixture(`${name}.crt`))).serialNumber;
const first = serialOf("localhost");
const renewed = serialOf("localhost-renewed");
const start = useServices();

function connected(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca }, () => resolve(socket));
    socket.on("error", reject);
  });
}

/** The serial number of the certificate that a new connection receives. */
async function shownBy({ port }: { readonly port: number }): Promise<string> {
  const socket = await connected(port);
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

/** Sends an HTTP/1.1 request. Returns the status and the local port of the connection. */
function askHttp1(port: number, options: AgentOptions, agent: Agent | false = false) {
  return new Promise<{ status: number | undefined; from: number | undefined }>(
    (resolve, reject) => {
      const to = { port, host: "127.0.0.1", path: "/healthz", ca, agent, ...options };
      const outgoing = request(to, (incoming) => {
        const from = incoming.socket.localPort;
        incoming.resume().on("end", () => resolve({ status: incoming.statusCode, from }));
      });
      outgoing.on("error", reject);
      outgoing.end();
    },
  );
}

function askHttp2(server: { readonly url: string }, session: ClientHttp2Session) {
  session.on("error", () => {});
  return callRaw(server, "/healthz", { headers: { ":method": "GET" } }, session);
}

/** Files in the layout of a mounted Kubernetes secret: links to links, one of which is replaced. */
async function mountSecret(folder: string, name: string) {
  const put = async (version: string, pair: string) => {
    await mkdir(join(folder, version));
    await copyFile(fixture(`${pair}.crt`), join(folder, version, "tls.crt"));
    await copyFile(fixture(`${pair}.key`), join(folder, version, "tls.key"));
    await symlink(version, join(folder, "next"));
    await rename(join(folder, "next"), join(folder, "data"));
  };
  await put("1", name);
  for (const file of ["tls.crt", "tls.key"]) {
    await symlink(join("data", file), join(folder, file));
  }
  return { put };
}

const inFolder = (folder: string) => ({
  TLS_CERT: join(folder, "tls.crt"),
  TLS_KEY: join(folder, "tls.key"),
});

async function withServer(
  environment: Environment,
  use: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await startServer("lmdb", { environment });
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

describe("a replaced certificate", () => {
  it("is used for new connections, and open ones continue", () =>
    withTempFolder(async (folder) => {
      const secret = await mountSecret(folder, "localhost");
      await withServer(inFolder(folder), async (server) => {
        const { key } = await server.createTenant();
        const agent = new Agent({ keepAlive: true, maxSockets: 1, ca });
        const session = connectHttp2(server.url, { ca });
        const transport = createGrpcTransport({ baseUrl: server.url, nodeOptions: { ca } });
        const headers = { "svc-api-key": key };
        const end = new AbortController();
        const stream = createClient(AccessService, transport)
          .watchCredentials({}, { headers, signal: end.signal })
          [Symbol.asyncIterator]();
        const { from } = await askHttp1(server.port, {}, agent);
        await askHttp2(server, session);
        await stream.next();
        expect(await shownBy(server)).toBe(first);

        await secret.put("2", "localhost-renewed");
        await until(async () => (await shownBy(server)) === renewed);

        expect(await askHttp1(server.port, {}, agent)).toEqual({ status: 200, from });
        expect(await askHttp2(server, session)).toMatchObject({ status: 200 });
        // The stream yields more than its first message.
        expect(await stream.next()).toMatchObject({ done: false });
        expect(server.logs).toContainEqual(
          expect.objectContaining({ level: 30, msg: "TLS certificate reloaded" }),
        );
        end.abort();
        session.destroy();
        agent.destroy();
      });
    }));

  it("is used once its key matches, and the old pair until then", () =>
    withTempFolder(async (folder) => {
      const { TLS_CERT, TLS_KEY } = inFolder(folder);
      await copyFile(fixture("localhost.crt"), TLS_CERT);
      await copyFile(fixture("localhost.key"), TLS_KEY);
      await withServer({ TLS_CERT, TLS_KEY }, async (server) => {
        const told = () => server.logs.map(({ level, msg }) => ({ level, msg }));
        const isTold = (part: string) => told().some(({ msg }) => String(msg).includes(part));

        await copyFile(fixture("localhost-renewed.crt"), TLS_CERT);
        await until(async () => isTold("a certificate and its private key"));
        expect(await shownBy(server)).toBe(first);

        await unlink(TLS_KEY);
        await until(async () => isTold("ENOENT"));
        expect(await shownBy(server)).toBe(first);

        await writeFile(TLS_KEY, "");
        await until(async () => told().length === 3);
        expect(await shownBy(server)).toBe(first);

        await copyFile(fixture("localhost-renewed.key"), TLS_KEY);
        await until(async () => (await shownBy(server)) === renewed);
        // Each fault is logged once, however often the files are read.
        expect(told().map(({ level }) => level)).toEqual([40, 40, 40, 30]);
        expect(JSON.stringify(told())).not.toContain("PRIVATE");
      });
    }));

  it("is reloaded by each worker", () =>
    withTempFolder(async (folder) => {
      const secret = await mountSecret(folder, "localhost");
      const service = await start({
        ...inFolder(folder),
        ...{ DATA_DIR: join(folder, "store"), WORKERS: "2" },
      });
      await secret.put("2", "localhost-renewed");
      await service.process.until(/certificate reloaded(.|\n)*certificate reloaded/);
      for (let connection = 0; connection < 4; connection++) {
        expect(await shownBy(service)).toBe(renewed);
      }
      service.process.child.kill("SIGTERM");
      expect(await service.process.ended()).toBe(0);
    }));
});

describe("with client certificates required", () => {
  const pair = (name: string) => ({
    cert: readFileSync(fixture(`${name}.crt`)),
    key: readFileSync(fixture(`${name}.key`)),
  });
  const known = pair("client");
  const stranger = pair("localhost-renewed");
  const environment = {
    TLS_CERT: fixture("localhost.crt"),
    TLS_KEY: fixture("localhost.key"),
    TLS_CLIENT_CA: fixture("client-ca.crt"),
  };
  const callers: [
    string,
    (server: TestServer, key: string, shown: Partial<typeof known>) => Promise<unknown>,
  ][] = [
    ["HTTP/1.1", ({ port }, _key, shown) => askHttp1(port, shown)],
    [
      "HTTP/2",
      async (server, _key, shown) => {
        const session = connectHttp2(server.url, { ca, ...shown });
        const { status } = await askHttp2(server, session).finally(() => session.destroy());
        expect(status).toBe(200);
      },
    ],
    [
      "gRPC",
      ({ url: baseUrl }, key, shown) => {
        const transport = createGrpcTransport({ baseUrl, nodeOptions: { ca, ...shown } });
        const headers = { "svc-api-key": key };
        return createClient(ApplicationService, transport).getApplicationByKey({}, { headers });
      },
    ],
  ];

  it.each(callers)(
    "accepts a certificate of the configured CA over %s and refuses others",
    (_name, call) =>
      withServer(environment, async (server) => {
        const { key } = await server.createTenant();
        await call(server, key, known);
        await expect(call(server, key, {})).rejects.toThrow();
        await expect(call(server, key, stranger)).rejects.toThrow();
        await call(server, key, known);
      }),
  );

  it("reloads the CA when its file is replaced", () =>
    withTempFolder(async (folder) => {
      const authority = join(folder, "clients.crt");
      await copyFile(fixture("client-ca.crt"), authority);
      await withServer({ ...environment, TLS_CLIENT_CA: authority }, async (server) => {
        const mayCall = (shown: typeof known) =>
          askHttp1(server.port, shown).then(
            () => true,
            () => false,
          );
        await writeFile(authority, "nobody");
        await until(async () => server.logs.length > 0);
        expect(server.logs[0]?.msg).toContain(
          "TLS_CLIENT_CA must be a PEM file with the certificate",
        );
        expect([await mayCall(known), await mayCall(stranger)]).toEqual([true, false]);

        await copyFile(fixture("localhost-renewed.crt"), authority);
        await until(() => mayCall(stranger));
        expect(await mayCall(known)).toBe(false);
      });
    }));
});

it("refuses TLS versions before 1.2", () =>
  withServer(
    { TLS_CERT: fixture("localhost.crt"), TLS_KEY: fixture("localhost.key") },
    async ({ port }) => {
      const old = { maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" };
      await expect(askHttp1(port, old as AgentOptions)).rejects.toThrow(/version|alert/i);
    },
  ));
