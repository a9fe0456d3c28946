import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, it } from "@jest/globals";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { withTempFolder } from "../support/service/run-latchkey.js";
import { startServer } from "../support/service/server.js";
import { describeWithProxy, startRunningProxy, startUpstream } from "./gateway.js";
import { describeGateway } from "./suite.js";

describeGateway("envoy", {
  more(gateway) {
    it("forwards the trace of the client to Latchkey, which logs it", async () => {
      const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
      const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
      await send(gateway(), "/cards/card-4242", { headers });
      await send(gateway(), "/cards/card-4242");
      const method = "envoy.service.auth.v3.Authorization/Check";
      const traces = gateway().server.logs.flatMap((line) =>
        line.method === method ? [line.trace_id] : [],
      );
      expect(traces).toContain(traceId);
      expect(traces.at(-1)).toBeUndefined();
    });
  },
});

const fixture = (name: string) => resolve("test", "fixtures", name);

/** The example with the client certificate of the guide instead of a key. */
function configWithCertificate(): string {
  const guide = readFileSync("docs/guides/protect-an-api-behind-a-gateway.md", "utf8");
  const [, yaml = "missing"] = /```yaml\n(transport_socket:.*?)```/s.exec(guide) ?? [];
  const socket = yaml
    .replace("/etc/envoy/client.crt", fixture("client.crt"))
    .replace("/etc/envoy/client.key", fixture("client.key"))
    .replace("/etc/envoy/latchkey-ca.crt", fixture("localhost.crt"))
    .replaceAll("latchkey.example.com", "localhost")
    .replaceAll(/^(?=.)/gm, "      ");
  return readFileSync("examples/gateways/envoy/envoy.yaml", "utf8")
    .replace(/^.*svc-api-key, value.*\n/m, "")
    .replace("    - name: latchkey\n", `    - name: latchkey\n${socket}`);
}

describeWithProxy("envoy", "envoy with a client certificate", () => {
  it("needs no key of its own", () =>
    withTempFolder(async (folder) => {
      const base = await startServer();
      const root = await base.createTenant();
      const api = createRestApi(base.url);
      const gateway = await api.createApplication(root.key, {
        name: "Gateway",
        type: "private",
        permissions: ["access:check"],
      });
      const { key = "" } = await api.createApplication(root.key, {
        name: "Reader",
        type: "private",
        permissions: ["token:read"],
      });
      const server = await startServer("lmdb", {
        store: base.store,
        environment: {
          TLS_CERT: fixture("localhost.crt"),
          TLS_KEY: fixture("localhost.key"),
          TLS_CLIENT_CA: fixture("client-ca.crt"),
          GATEWAY_CERTIFICATES: `client=${gateway.id}`,
          GATEWAY_ROUTES: "examples/gateways/routes.yaml",
        },
      });
      const upstream = await startUpstream();
      await writeFile(join(folder, "envoy.yaml"), configWithCertificate());
      const envoy = await startRunningProxy(
        "envoy",
        {
          GATEWAY_KEY: "",
          LATCHKEY_HOST: "127.0.0.1",
          LATCHKEY_PORT: String(server.port),
          UPSTREAM_HOST: "127.0.0.1",
          UPSTREAM_PORT: upstream.port,
        },
        folder,
      );
      const headers = { "svc-api-key": key };
      expect((await send(envoy, "/cards/card-4242", { headers })).status).toBe(200);
      const post = { method: "POST", headers, body: "{}" };
      expect((await send(envoy, "/cards/", post)).status).toBe(403);

      await api.disableApplication(root.key, { id: gateway.id });
      expect((await send(envoy, "/cards/card-4242", { headers })).status).toBe(503);
      await envoy.stop();
      await upstream.stop();
      await server.close();
      await base.close();
    }));
});
