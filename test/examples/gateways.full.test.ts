import { expect, it } from "@jest/globals";
import { proxyNames } from "../../examples/gateways/proxies.js";
import { describeWithProxy } from "../gateways/gateway.js";
import { reservePorts } from "../support/service/ports.js";
import { stopExample, useExamples } from "./example-process.js";

const runExample = useExamples();

for (const name of proxyNames) {
  describeWithProxy(name, `${name} example`, () => {
    it("starts everything with one command, and prints commands that work", async () => {
      const [port] = await reservePorts(1);
      const example = runExample("gateway", { GATEWAY: name, GATEWAY_PORT: String(port) });
      const [commands] = await example.until(/curl -i .*-X DELETE [^\n]+\n/s);
      const [read = "", create = "", withoutKey = "", remove = ""] = commands
        .split("\n")
        .filter((line) => line.startsWith("curl "));
      const status = async (command: string) => {
        const [, url = ""] = /(http:\S+)/.exec(command) ?? [];
        const [, key] = /SVC-API-KEY: (\w+)/.exec(command) ?? [];
        const [, method = command.includes(" -d ") ? "POST" : "GET"] =
          /-X (\w+)/.exec(command) ?? [];
        const headers: Record<string, string> = key === undefined ? {} : { "svc-api-key": key };
        return (await fetch(url, { method, headers })).status;
      };
      expect(await status(read)).toBe(200);
      expect(await status(create)).toBe(403);
      expect(await status(withoutKey)).toBe(401);
      expect(await status(remove)).toBe(204);
      expect(await status(read)).toBe(401);
      await stopExample(example);
      await expect(status(read)).rejects.toThrow();
    });
  });
}
