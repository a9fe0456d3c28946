import {
  create,
  type DescMessage,
  type DescMethodUnary,
  getOption,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { http } from "../../../../gen/google/api/annotations_pb.js";
import { statusOf } from "../../../../src/contract/methods.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import {
  type ProblemCode,
  problemCatalogue,
  problemUri,
} from "../../../../src/contract/problems.js";
import { json, printValue } from "../../../../src/contract/samples/call.js";
import { createSamples } from "../../../../src/contract/samples/samples.js";
import { keyHeader } from "../../../common/key-header.js";
import { restJson } from "../../rest-json.js";
import { serviceUrl } from "../../sign-in/connection.js";
import { CodeBlock, CodeTabs } from "../../ui/code.js";
import { Badge } from "../../ui/display.js";

/** A call and its response, as REST clients see them. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body?: JsonValue | undefined;
  readonly status: number;
  /** Absent if the response has no body. */
  readonly response?: JsonValue | undefined;
}

interface Performed<Output extends DescMessage> {
  readonly exchange: Exchange;
  /** Absent if the service refused the call. */
  readonly message?: MessageShape<Output>;
}

/** Calls the service. A refusal is a result too. Throws only if there is no response. */
export async function perform<Input extends DescMessage, Output extends DescMessage>(
  transport: Transport,
  method: DescMethodUnary<Input, Output>,
  request: MessageInitShape<Input>,
): Promise<Performed<Output>> {
  const { pattern } = getOption(method, http);
  const sent = toJson(method.input, create(method.input, request), { useProtoFieldName: true });
  const call = {
    method: pattern.case?.toUpperCase() ?? "",
    path: String(pattern.value),
    ...(Object.keys(sent as object).length > 0 && { body: sent }),
  };
  try {
    const { message } = await transport.unary(method, undefined, undefined, undefined, request);
    const status = statusOf(method);
    const response = status === 204 ? undefined : toJson(method.output, message, restJson);
    return { exchange: { ...call, status, response }, message };
  } catch (thrown) {
    const { code, detail, requestId } = problemOf(thrown);
    const known = code === undefined ? undefined : problemCatalogue[code as ProblemCode];
    if (code === undefined || !known) {
      throw thrown;
    }
    const { status, title } = known;
    const problem = { type: problemUri(code), title, status, detail, code };
    const response = { ...problem, ...(requestId !== undefined && { request_id: requestId }) };
    return { exchange: { ...call, status, response } };
  }
}

interface ExchangeViewProps {
  readonly exchange: Exchange;
  /** Whose key the call uses. */
  readonly sender: string;
}

/** The call as code in several languages, and its response. Secrets are masked. */
export function ExchangeView({ exchange, sender }: ExchangeViewProps) {
  const { method, path, body, status, response } = exchange;
  const samples = createSamples({
    origin: serviceUrl,
    keyHeader,
    method,
    path,
    ...(body !== undefined && { body: withoutSecrets(body) }),
  });
  return (
    <div className="exchange">
      <div>
        <p className="exchange-title">
          <span>Call</span>
          <code>
            {method} {path}
          </code>
          <span className="hint">SVC_API_KEY is {sender}</span>
        </p>
        <CodeTabs label={`${method} ${path}`} samples={samples} />
      </div>
      <div>
        <p className="exchange-title">
          <span>Response</span>
          <Badge tone={status < 400 ? "good" : "plain"}>
            {status} {statusNames[status]}
          </Badge>
        </p>
        {response === undefined ? (
          <p className="hint">No body.</p>
        ) : (
          <CodeBlock
            code={printValue(withoutSecrets(response), json)}
            language="json"
            copyLabel="Copy response"
          />
        )}
      </div>
    </div>
  );
}

const statusNames: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  204: "No Content",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
};

const secret = /^lk_[a-z]{3}_/;

/** Shows only the prefix of keys and nonces. */
export function maskSecret(value: string): string {
  return value.replace(/^(lk_[a-z]{3}_).*$/, "$1••••••••");
}

function withoutSecrets(value: JsonValue): JsonValue {
  return JSON.parse(
    JSON.stringify(value, (_name, item) =>
      typeof item === "string" && secret.test(item) ? maskSecret(item) : item,
    ),
  );
}
