import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { text } from "node:stream/consumers";
import {
  type DescMethod,
  getOption,
  type Message,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { access, RestFormat } from "../../../gen/latchkey/v1/options_pb.js";
import { headerOf } from "../../../src/contract/methods.js";
import { type ProblemCode, problemCatalogue } from "../../../src/contract/problems.js";
import type { Binding } from "../../../src/transport/rest/bindings.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { envelope, readDetails } from "../../support/http/raw-grpc.js";

export interface CallResult {
  /** The HTTP status of a refusal; absent on success. */
  readonly refusal?: number;
  /** The raw response text. */
  readonly text: string;
}

/** The header that carries the caller's key. */
function keyHeaderOf(method: DescMethod): string {
  return getOption(method, access).keyHeader.toLowerCase() || "svc-api-key";
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Called on 100 Continue. The body is sent when the promise resolves. */
  readonly beforeBody?: () => Promise<unknown>;
}

export async function callRest(
  url: string,
  { method, verb, segments, hasBody, status, format }: Binding,
  message: Message,
  key: string | undefined,
  { headers = {}, beforeBody }: CallOptions = {},
): Promise<CallResult> {
  const fields = toJson(method.input, message as MessageShape<typeof method.input>, {
    useProtoFieldName: true,
  }) as Record<string, string>;
  const path = segments.map((segment) =>
    "literal" in segment ? segment.literal : takeField(fields, segment.field),
  );
  const headerField = method.input.fields.find((field) => headerOf(field) && field.name in fields);
  if (headerField) {
    throw new Error(`${headerField} is sent as a header, which is not implemented here`);
  }
  const isForm = format === RestFormat.FORM;
  const query = hasBody ? "" : `?${new URLSearchParams(fields)}`;
  const outgoing = request(`${url}/${path.join("/")}${query}`, {
    method: verb,
    headers: {
      ...(key !== undefined && { [keyHeaderOf(method)]: key }),
      ...(hasBody && {
        "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json",
      }),
      ...(beforeBody && { expect: "100-continue" }),
      ...headers,
    },
  });
  const encoded = isForm ? `${new URLSearchParams(fields)}` : JSON.stringify(fields);
  const body = hasBody ? encoded : undefined;
  if (beforeBody) {
    outgoing.flushHeaders();
    outgoing.once("continue", () =>
      beforeBody().then(
        () => outgoing.end(body),
        (reason) => outgoing.destroy(reason),
      ),
    );
  } else {
    outgoing.end(body);
  }
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const response = await text(incoming);
  return incoming.statusCode === status
    ? { text: response }
    : { text: response, refusal: incoming.statusCode ?? 0 };
}

function takeField(fields: Record<string, string>, name: string): string {
  const { [name]: value = "" } = fields;
  delete fields[name];
  return value;
}

/** Cancels a stream after its first message. */
export function callGrpc(
  session: ClientHttp2Session,
  method: DescMethod,
  message: Message,
  key: string | undefined,
  { headers = {}, beforeBody }: CallOptions = {},
): Promise<CallResult> {
  const isStream =
    method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const stream = session.request({
    ":method": "POST",
    ":path": rpcPath(method),
    "content-type": "application/grpc",
    te: "trailers",
    ...(key !== undefined && { [keyHeaderOf(method)]: key }),
    ...(beforeBody && { expect: "100-continue" }),
    ...headers,
  });
  const body = envelope(toBinary(method.input, message as MessageShape<typeof method.input>));
  if (beforeBody) {
    stream.once("continue", () =>
      beforeBody().then(
        () => stream.end(body),
        (reason) => stream.destroy(reason),
      ),
    );
  } else {
    stream.end(body);
  }
  return new Promise((resolve, reject) => {
    let text = "";
    const finish = (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] !== undefined) {
        resolve({ text, ...parseRefusal(headers) });
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

function parseRefusal(headers: Record<string, unknown>): { refusal?: number } {
  if (headers["grpc-status"] === "0") {
    return {};
  }
  const details = readDetails(Buffer.from(String(headers["grpc-status-details-bin"]), "base64"));
  const code = details.info?.reason.toLowerCase() as ProblemCode;
  return { refusal: problemCatalogue[code].status };
}
