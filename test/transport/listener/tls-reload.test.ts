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
import { withTempFolder } from "../../support/service/run-latchkey.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { useServices } from "../../support/service/service-process.js";
import { until } from "../../support/until.js";

// All are valid for a hundred years. The two for localhost are self-signed and have different key types.
const fixture = (name: string) => join("test/fixtures", name);
const ca = [readFileSync(fixture("localhost.crt")), readFileSync(fixture("localhost-renewed.crt"))];
const serialOf = (name: string) =>
  new X509Certificate(readFileSync(fixture(`${name}.crt`))).serialNumber;
const firstSerial = serialOf("localhost");
const renewedSerial = serialOf("localhost-renewed");
const start = useServices();

function connectTo(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca }, () => resolve(socket));
    socket.on("error", reject);
  });
}

/** Returns the serial number of the certificate that a new connection receives. */
async function getServedSerial({ port }: { readonly port: number }): Promise<string> {
  const socket = await connectTo(port);
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

/** Sends an HTTP/1.1 request and returns the status and the local port of the connection. */
function callHttp1(port: number, options: AgentOptions, agent: Agent | false = false) {
  return new Promise<{ status: number | undefined; localPort: number | undefined }>(
    (resolve, reject) => {
      const target = { port, host: "127.0.0.1", path: "/healthz", ca, agent, ...options };
      const outgoing = request(target, (incoming) => {
        const { localPort } = incoming.socket;
        incoming.resume().on("end", () => resolve({ status: incoming.statusCode, localPort }));
      });
      outgoing.on("error", reject);
      outgoing.end();
    },
  );
}

function callHttp2(server: { readonly url: string }, session: ClientHttp2Session) {
  session.on("error", () => {});
  return callRaw(server, "/healthz", { headers: { ":method": "GET" } }, session);
}

/** Creates files in the layout of a mounted Kubernetes secret: links to a link that updates replace. */
async function mountSecret(folder: string, name: string) {
  const update = async (version: string, pair: string) => {
    await mkdir(join(folder, version));
    await copyFile(fixture(`${pair}.crt`), join(folder, version, "tls.crt"));
    await copyFile(fixture(`${pair}.key`), join(folder, version, "tls.key"));
    await symlink(version, join(folder, "next"));
    await rename(join(folder, "next"), join(folder, "data"));
  };
  await update("1", name);
  for (const file of ["tls.crt", "tls.key"]) {
    await symlink(join("data", file), join(folder, file));
  }
  return { update };
}

const tlsFilesIn = (folder: string) => ({
  TLS_CERT: join(folder, "tls.crt"),
  TLS_KEY: join(folder, "tls.key"),
});

async function withServer(
  environment: Environment,
  run: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await startServer("lmdb", { environment });
  try {
    await run(server);
  } finally {
    await server.close();
  }
}

describe("a replaced certificate", () => {
  it("is used for new connections, and open ones continue", () =>
    withTempFolder(async (folder) => {
      const secret = await mountSecret(folder, "localhost");
      await withServer(tlsFilesIn(folder), async (server) => {
        const { key } = await server.createTenant();
        const agent = new Agent({ keepAlive: true, maxSockets: 1, ca });
        const session = connectHttp2(server.url, { ca });
        const transport = createGrpcTransport({ baseUrl: server.url, nodeOptions: { ca } });
        const headers = { "svc-api-key": key };
        const abort = new AbortController();
        const stream = createClient(AccessService, transport)
          .watchCredentials({}, { headers, signal: abort.signal })
          [Symbol.asyncIterator]();
        const { localPort } = await callHttp1(server.port, {}, agent);
        await callHttp2(server, session);
        await stream.next();
        expect(await getServedSerial(server)).toBe(firstSerial);

        await secret.update("2", "localhost-renewed");
        await until(async () => (await getServedSerial(server)) === renewedSerial);

        expect(await callHttp1(server.port, {}, agent)).toEqual({ status: 200, localPort });
        expect(await callHttp2(server, session)).toMatchObject({ status: 200 });
        // The stream yields more than its first message.
        expect(await stream.next()).toMatchObject({ done: false });
        expect(server.logs).toContainEqual(
          expect.objectContaining({ level: "info", msg: "TLS certificate reloaded" }),
        );
        abort.abort();
        session.destroy();
        agent.destroy();
      });
    }));

  it("is used once its key matches, and the old pair until then", () =>
    withTempFolder(async (folder) => {
      const { TLS_CERT, TLS_KEY } = tlsFilesIn(folder);
      await copyFile(fixture("localhost.crt"), TLS_CERT);
      await copyFile(fixture("localhost.key"), TLS_KEY);
      await withServer({ TLS_CERT, TLS_KEY }, async (server) => {
        const logLines = () => server.logs.map(({ level, msg }) => ({ level, msg }));
        const isLogged = (part: string) => logLines().some(({ msg }) => String(msg).includes(part));

        await copyFile(fixture("localhost-renewed.crt"), TLS_CERT);
        await until(async () => isLogged("a certificate and its private key"));
        expect(await getServedSerial(server)).toBe(firstSerial);

        await unlink(TLS_KEY);
        await until(async () => isLogged("ENOENT"));
        expect(await getServedSerial(server)).toBe(firstSerial);

        await writeFile(TLS_KEY, "");
        await until(async () => logLines().length === 3);
        expect(await getServedSerial(server)).toBe(firstSerial);

        await copyFile(fixture("localhost-renewed.key"), TLS_KEY);
        await until(async () => (await getServedSerial(server)) === renewedSerial);
        // Each error is logged once, however often the files are read.
        expect(logLines().map(({ level }) => level)).toEqual(["warn", "warn", "warn", "info"]);
        expect(JSON.stringify(logLines())).not.toContain("PRIVATE");
      });
    }));

  it("is reloaded by each worker", () =>
    withTempFolder(async (folder) => {
      const secret = await mountSecret(folder, "localhost");
      const service = await start({
        ...tlsFilesIn(folder),
        DATA_DIR: join(folder, "store"),
        WORKERS: "2",
      });
      await secret.update("2", "localhost-renewed");
      await service.process.until(/certificate reloaded(.|\n)*certificate reloaded/);
      for (let connection = 0; connection < 4; connection++) {
        expect(await getServedSerial(service)).toBe(renewedSerial);
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
  const trusted = pair("client");
  const untrusted = pair("localhost-renewed");
  const environment = {
    TLS_CERT: fixture("localhost.crt"),
    TLS_KEY: fixture("localhost.key"),
    TLS_CLIENT_CA: fixture("client-ca.crt"),
  };
  const clients: [
    string,
    (server: TestServer, key: string, certificate: Partial<typeof trusted>) => Promise<unknown>,
  ][] = [
    ["HTTP/1.1", ({ port }, _key, certificate) => callHttp1(port, certificate)],
    [
      "HTTP/2",
      async (server, _key, certificate) => {
        const session = connectHttp2(server.url, { ca, ...certificate });
        const { status } = await callHttp2(server, session).finally(() => session.destroy());
        expect(status).toBe(200);
      },
    ],
    [
      "gRPC",
      ({ url: baseUrl }, key, certificate) => {
        const transport = createGrpcTransport({ baseUrl, nodeOptions: { ca, ...certificate } });
        const headers = { "svc-api-key": key };
        return createClient(ApplicationService, transport).getApplicationByKey({}, { headers });
      },
    ],
  ];

  it.each(clients)(
    "accepts a certificate of the configured CA over %s and refuses others",
    (_name, call) =>
      withServer(environment, async (server) => {
        const { key } = await server.createTenant();
        await call(server, key, trusted);
        await expect(call(server, key, {})).rejects.toThrow();
        await expect(call(server, key, untrusted)).rejects.toThrow();
        await call(server, key, trusted);
      }),
  );

  it("reloads the CA when its file is replaced", () =>
    withTempFolder(async (folder) => {
      const caFile = join(folder, "clients.crt");
      await copyFile(fixture("client-ca.crt"), caFile);
      await withServer({ ...environment, TLS_CLIENT_CA: caFile }, async (server) => {
        const canCall = (certificate: typeof trusted) =>
          callHttp1(server.port, certificate).then(
            () => true,
            () => false,
          );
        await writeFile(caFile, "not a certificate");
        await until(async () => server.logs.length > 0);
        expect(server.logs[0]?.msg).toContain(
          "TLS_CLIENT_CA must be a PEM file with the certificate",
        );
        expect([await canCall(trusted), await canCall(untrusted)]).toEqual([true, false]);

        await copyFile(fixture("localhost-renewed.crt"), caFile);
        await until(() => canCall(untrusted));
        expect(await canCall(trusted)).toBe(false);
      });
    }));
});

it("refuses TLS versions before 1.2", () =>
  withServer(
    { TLS_CERT: fixture("localhost.crt"), TLS_KEY: fixture("localhost.key") },
    async ({ port }) => {
      const oldVersions = {
        maxVersion: "TLSv1.1",
        minVersion: "TLSv1",
        ciphers: "DEFAULT@SECLEVEL=0",
      };
      await expect(callHttp1(port, oldVersions as AgentOptions)).rejects.toThrow(/version|alert/i);
    },
  ));
