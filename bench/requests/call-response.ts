import { addressOf, type Server } from "../servers.js";

/**
 * The message that a method answers, in base64. Asked in the Connect protocol,
 * whose binary answers are the message and nothing else.
 */
export async function answerOfCall(
  server: Server,
  path: string,
  key: string,
  message: Uint8Array,
): Promise<string> {
  const response = await fetch(`${addressOf(server)}${path}`, {
    method: "POST",
    headers: { "svc-api-key": key, "content-type": "application/proto" },
    body: message as Uint8Array<ArrayBuffer>,
  });
  if (!response.ok) {
    throw new Error(`${path} answered ${response.status} ${await response.text()}`);
  }
  return Buffer.from(await response.arrayBuffer()).toString("base64");
}
