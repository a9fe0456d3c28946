import { Agent, request as startRequest } from "node:http";
import type { LoadClient } from "./drive.js";
import { keyHeader, type Load } from "./load.js";

export function createRestClient(load: Load): LoadClient {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  const target = { host: "127.0.0.1", port: load.port, path: load.path, method: load.verb, agent };
  return {
    send: ({ key, body = "" }) =>
      new Promise((resolve, reject) => {
        const headers = {
          [keyHeader]: key,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
        };
        const request = startRequest({ ...target, headers }, (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part) => {
            text += part;
          });
          response.on("error", reject);
          response.on("end", () => {
            if (response.statusCode === load.status) {
              resolve(text);
            } else {
              reject(new Error(`answered ${response.statusCode} ${text}`));
            }
          });
        });
        request.on("error", reject);
        request.end(body);
      }),
    close: () => agent.destroy(),
  };
}
