import { keyHeader, type Load, type LoadRequest, loadHost } from "./load.js";

/** A request as HTTP/1.1 has it on the wire. */
export function requestBytes(load: Load, { key, path = load.path, body }: LoadRequest): Buffer {
  const bytes = Buffer.from(body ?? "");
  const head = [
    `${load.verb} ${path} HTTP/1.1`,
    `host: ${loadHost}:${load.port}`,
    `${keyHeader}: ${key}`,
    ...(load.verb === "GET"
      ? []
      : [
          `content-type: ${load.contentType ?? "application/json"}`,
          `content-length: ${bytes.length}`,
        ]),
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), bytes]);
}
