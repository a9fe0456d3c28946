import type { ClientHttp2Session } from "node:http2";
import {
  type DescMethod,
  type Message,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { headerOf } from "../../src/contract.js";
import { type ProblemCode, problemCatalogue } from "../../src/problem-catalogue.js";
import type { Binding } from "../../src/server/rest/binding.js";
import { envelope, readDetails } from "../support/raw-grpc.js";

/** How a call was answered. */
export interface Answer {
  /** Why it was refused, as a status of HTTP; absent where it was not. */
  readonly refusal?: number;
  /** All that was said, as it came. */
  readonly text: string;
}

const keyHeader = "svc-api-key";

/** Makes a call at the path of its method. */
export async function askRest(
  url: string,
  { method, verb, segments, hasBody, status }: Binding,
  message: Message,
  key: string | undefined,
): Promise<Answer> {
  const fields = toJson(method.input, message as MessageShape<typeof method.input>, {
    useProtoFieldName: true,
  }) as Record<string, string>;
  const path = segments.map((it) => ("literal" in it ? it.literal : take(fields, it.field)));
  const withHeader = method.input.fields.find((field) => headerOf(field) && field.name in fields);
  if (withHeader) {
    throw new Error(`${withHeader} goes in a header, which no sample needs yet`);
  }
  const query = hasBody ? "" : `?${new URLSearchParams(fields)}`;
  const response = await fetch(`${url}/${path.join("/")}${query}`, {
    method: verb,
    headers: {
      ...(key !== undefined && { [keyHeader]: key }),
      ...(hasBody && { "content-type": "application/json" }),
    },
    ...(hasBody && { body: JSON.stringify(fields) }),
  });
  const text = await response.text();
  return response.status === status ? { text } : { text, refusal: response.status };
}

function take(fields: Record<string, string>, name: string): string {
  const { [name]: value = "" } = fields;
  delete fields[name];
  return value;
}

/** Makes a call of gRPC. A stream is left with its first message. */
export function askGrpc(
  session: ClientHttp2Session,
  method: DescMethod,
  message: Message,
  key: string | undefined,
): Promise<Answer> {
  const isStream =
    method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const stream = session.request({
    ":method": "POST",
    ":path": `/${method.parent.typeName}/${method.name}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...(key !== undefined && { [keyHeader]: key }),
  });
  stream.end(envelope(toBinary(method.input, message as MessageShape<typeof method.input>)));
  return new Promise((resolve, reject) => {
    let text = "";
    const finish = (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] !== undefined) {
        resolve({ text, ...refusalIn(headers) });
      }
    };
    stream.on("response", finish);
    stream.on("trailers", finish);
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (isStream) {
        resolve({ text });
        stream.close();
      }
    });
    stream.on("error", reject);
    stream.on("close", () => reject(new Error(`${method} ended without a status`)));
  });
}

function refusalIn(headers: Record<string, unknown>): { refusal?: number } {
  if (headers["grpc-status"] === "0") {
    return {};
  }
  const details = readDetails(Buffer.from(String(headers["grpc-status-details-bin"]), "base64"));
  const code = details.info?.reason.toLowerCase() as ProblemCode;
  return { refusal: problemCatalogue[code].status };
}
