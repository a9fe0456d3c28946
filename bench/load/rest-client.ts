import { Agent, request as startRequest } from "node:http";
import type { LoadClient } from "./drive.js";
import { keyHeader, type Load } from "./load.js";

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string;
  readonly status: number;
}

export function createRestClient(load: Load): LoadClient {
  const { port, connections, verb: method, path, status } = load;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  function call({ status, body = "", ...target }: Call): Promise<string> {
    return new Promise((resolve, reject) => {
      const request = startRequest({ host: "127.0.0.1", port, agent, ...target }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part) => {
          text += part;
        });
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode === status) {
            resolve(text);
          } else {
            reject(new Error(`answered ${response.statusCode} ${text}`));
          }
        });
      });
      request.on("error", reject);
      request.end(body);
    });
  }

  return {
    open: async () => {
      const ready: Call = { method: "GET", path: "/healthz", status: 200 };
      await Promise.all(Array.from({ length: connections }, () => call(ready)));
    },
    send: ({ key, body = "" }) => {
      const headers = {
        [keyHeader]: key,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      };
      return call({ method, path, status, headers, body });
    },
    close: () => agent.destroy(),
  };
}
