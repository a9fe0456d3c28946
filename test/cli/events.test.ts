import { describe, expect, it } from "@jest/globals";
import { useCleanup } from "../support/cleanup.js";
import { startHttp1Proxy } from "../support/http/http1-proxy.js";
import { startProxy } from "../support/http/tcp-proxy.js";
import { runLatchkey } from "../support/service/run-latchkey.js";
import { until } from "../support/until.js";
import { useAdminCli, useBackendAndShop } from "./admin-cli.js";

const admin = useAdminCli();
const { service, cli, adminEnvironment, runAsAdmin, runJson, callRest } = admin;
const { backendId } = useBackendAndShop(admin);
const stopAfterTest = useCleanup();

describe("events", () => {
  function followAt(url: string, ...options: readonly string[]) {
    const follow = runLatchkey(
      ["events", "--follow", "--json", "--since", "1h", ...options],
      cli.environment({ ...adminEnvironment(), LATCHKEY_URL: url }),
    );
    stopAfterTest(() => follow.child.kill("SIGKILL"));
    return follow;
  }

  it("are listed and followed through an HTTP/1.1 proxy, also after a lost connection, until the reader closes the pipe", async () => {
    let failures = 0;
    const proxy = await startHttp1Proxy(service.port, (path) => {
      if (failures > 0 && path.endsWith("/WatchEvents")) {
        failures--;
        proxy.breakConnections();
      }
      return undefined;
    });
    stopAfterTest(() => void proxy.close());
    const listed = await runJson(
      ["events", "ls", "--limit", "1", "--kind", "application.created"],
      {
        environment: { LATCHKEY_URL: proxy.url },
      },
    );
    expect(listed.data).toHaveLength(1);
    const follow = followAt(proxy.url);
    await follow.until(new RegExp(listed.data[0].id));
    await callRest(`/applications/${backendId()}/disable`, "POST");
    await follow.until(/"kind":"application.disabled"/);
    failures = 2;
    proxy.breakConnections();
    await callRest(`/applications/${backendId()}/enable`, "POST");
    await follow.until(/"kind":"application.enabled","[^\n]*\n$/);
    const lines = follow.output.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    follow.child.stdout?.destroy();
    await callRest(`/applications/${backendId()}/disable`, "POST");
    expect(await follow.ended()).toBe(0);
    expect(failures).toBe(0);
    expect(follow.output.stderr).toMatch(/^Connection lost\. Reconnecting\. .*\nReconnected\.\n$/);
    await callRest(`/applications/${backendId()}/enable`, "POST");
  });

  it("are filtered by the name or external id of an application", async () => {
    const { id } = await runJson([
      ...["apps", "create", "Filtered", "--type", "private", "--permission", "a:b"],
      ...["--external-id", "svc-filtered"],
    ]);
    for (const option of [
      ["--target", "Filtered"],
      ["--target", "external:svc-filtered"],
      ["--target", id],
      ["--actor", "Bootstrap", "--target", "Filtered"],
    ]) {
      const { data } = await runJson(["events", ...option]);
      expect(data).toMatchObject([{ kind: "application.created", target: { application_id: id } }]);
    }
    expect((await runJson(["events", "--actor", "Filtered"])).data).toEqual([]);
    expect((await runAsAdmin(["events", "--target", "Nobody"])).stderr).toContain(
      'No application is named "Nobody".',
    );
    const follow = followAt(service.url, "--target", "Filtered");
    await follow.until(/"kind":"application.created"/);
  });

  it("are found by request id, address, method, reason, kinds and principal, and shown with all details", async () => {
    const { id, key } = await runJson([
      ...["apps", "create", "Refused", "--type", "private", "--permission", "a:b"],
    ]);
    const response = await fetch(`${service.url}/events`, {
      headers: { "svc-api-key": key, "x-request-id": "cli-refused-1" },
    });
    expect(response.status).toBe(403);
    const find = async (...options: readonly string[]) =>
      (await runJson(["events", ...options])).data as { id: string; kind: string }[];
    await until(async () => (await find("--request-id", "cli-refused-1")).length > 0);
    const [denied] = await find("--request-id", "cli-refused-1");
    expect(denied).toMatchObject({ kind: "access.denied", actor: { application_id: id } });
    for (const options of [
      ["--method", "ListEvents", "--reason", "permission_denied"],
      ["--address", "127.0.0.1", "--kind", "access.denied"],
      ["--actor", "Refused"],
    ]) {
      expect(await find("--principal", "Refused", ...options)).toEqual([denied]);
    }
    const both = ["--kind", "access.denied", "--kind", "application.created"];
    expect(await find("--principal", "Refused", ...both)).toMatchObject([
      denied,
      { kind: "application.created" },
    ]);
    const eventId = String(denied?.id);
    expect(await runJson(["events", eventId])).toEqual(denied);
    const shown = await runAsAdmin(["events", eventId]);
    expect(shown.stdout).toMatch(/^request id +cli-refused-1$/m);
    expect(shown.stdout).toMatch(/^actor +Refused +[0-9a-f-]{36}$/m);
    const updated = ["apps", "update", "Refused", "--description", "for tests"];
    expect((await runAsAdmin(updated)).code).toBe(0);
    const [change] = await find("--target", "Refused", "--kind", "application.updated");
    const shownChange = await runAsAdmin(["events", String(change?.id)]);
    expect(shownChange.stdout).toMatch(/^description +– → "for tests"$/m);
    expect(shownChange.stdout).not.toContain("permissions");
    const revoke = ["sessions", "rm", "--all", "--application", "Refused", "--opened-only"];
    expect((await runAsAdmin([...revoke, "--yes"])).code).toBe(0);
    const [revocation] = await find(
      "--target",
      "Refused",
      "--kind",
      "application.sessions_revoked",
    );
    const shownRevocation = await runAsAdmin(["events", String(revocation?.id)]);
    expect(shownRevocation.stdout).toMatch(/^opened only +yes$/m);
    const rotate = ["apps", "rotate", "Refused", "--grace", "1h", "--yes"];
    expect((await runAsAdmin(rotate)).code).toBe(0);
    const [rotation] = await find("--target", "Refused", "--kind", "key.regenerated");
    const shownRotation = await runAsAdmin(["events", String(rotation?.id)]);
    expect(shownRotation.stdout).toMatch(/^expires +\d{4}-/m);
    const missing = await runAsAdmin(["events", id]);
    expect(missing).toMatchObject({ code: 5, stderr: expect.stringContaining(`No event ${id}`) });
  });

  it("are shown as far as they were read when Ctrl-C stops a long list", async () => {
    for (let count = 0; count < 55; count++) {
      await callRest(`/applications/${backendId()}/disable`, "POST");
      await callRest(`/applications/${backendId()}/enable`, "POST");
    }
    let calls = 0;
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    const proxy = await startHttp1Proxy(service.port, (path) =>
      path.endsWith("/ListEvents") && ++calls === 2 ? isReleased : undefined,
    );
    stopAfterTest(() => void proxy.close());
    stopAfterTest(release);
    const list = runLatchkey(
      ["events", "--all", "--kind", "application.enabled", "--kind", "application.disabled"],
      cli.environment({ ...adminEnvironment(), LATCHKEY_URL: proxy.url }),
    );
    stopAfterTest(() => list.child.kill("SIGKILL"));
    await until(async () => calls === 2);
    list.child.kill("SIGINT");
    expect(await list.ended()).toBe(130);
    expect(list.output.stdout.trim().split("\n")).toHaveLength(101);
    expect(list.output.stderr).toMatch(/Stopped\. Showing 100 of \d+ events\./);
  });

  it("are followed after a connection became silent", async () => {
    const proxy = await startProxy(service.port);
    stopAfterTest(() => void proxy.close());
    const { id } = await runJson([
      ...["apps", "create", "Silent", "--type", "private", "--permission", "a:b"],
    ]);
    const startWith = async (timeout: string) => {
      const follow = followAt(proxy.url, "--target", id, "--timeout", timeout);
      await follow.until(/"kind":"application.created"/);
      return follow;
    };
    // A slow machine may need longer for the first response.
    const follow = await startWith("2s").catch(() => startWith("30s"));
    proxy.blackhole();
    await callRest(`/applications/${id}`, "DELETE");
    await follow.until(/"kind":"application.deleted"/);
    expect(follow.output.stderr).toContain(`${proxy.url} did not respond in time.`);
  });
});
