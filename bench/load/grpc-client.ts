import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { LoadClient } from "./drive.js";
import { keyHeader, type Load } from "./load.js";

/** Messages go as bytes: what the client spends on reading them is not of interest here. */
const asBytes = (bytes: Buffer) => bytes;

const openLimit = 10_000;

export function createGrpcClient(load: Load): LoadClient {
  const address = `127.0.0.1:${load.port}`;
  const clients = Array.from(
    { length: load.connections },
    // Clients of the same address would otherwise share one connection.
    () =>
      new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 }),
  );
  return {
    open: async () => {
      await Promise.all(clients.map(whenReady));
    },
    send: ({ key, body = "" }, connection) =>
      new Promise((resolve, reject) => {
        const metadata = new Metadata();
        metadata.set(keyHeader, key);
        const client = clients[connection] as Client;
        client.makeUnaryRequest(
          load.path,
          asBytes,
          asBytes,
          Buffer.from(body, "base64"),
          metadata,
          (error, answer) => {
            if (error || answer === undefined) {
              reject(error ?? new Error("answered without a message"));
            } else {
              resolve(load.keepAnswers ? answer.toString("base64") : "");
            }
          },
        );
      }),
    close: () => {
      for (const client of clients) {
        client.close();
      }
    },
  };
}

function whenReady(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + openLimit, (error) => (error ? reject(error) : resolve()));
  });
}
