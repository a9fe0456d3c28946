import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send, sendRaw } from "../../support/http/http.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { appendDecoded, type Recording, stringify } from "./recording.js";

const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const getApplicationPath = rpcPath(ApplicationService.method.getApplication);
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/** Sends a key in places where it does not belong, over HTTP/1.1 and HTTP/2. */
export async function sendMisplacedKeys(secret: string, recording: Recording): Promise<void> {
  const { root, finder, outputs } = recording;
  finder.add(secret);
  const record = (what: string, response: unknown) =>
    outputs.push([`the response to a key in ${what}`, appendDecoded(stringify(response))]);
  const percentEncoded = [...secret]
    .map((letter, at) => (at % 3 ? letter : `%${letter.charCodeAt(0).toString(16)}`))
    .join("");
  const authenticated = { "svc-api-key": root };
  const json = { ...authenticated, "content-type": "application/json" };
  for (const text of [secret, percentEncoded]) {
    for (const path of [
      `/${text}`,
      `/applications/${text}`,
      `/applications/${text}/keys/${text}`,
    ]) {
      record("a path", await send(recording, path, { headers: authenticated }));
      record(
        "a path",
        await callRaw(recording, path, { headers: authenticated, body: envelope("") }),
      );
    }
    const query = `start=${text}&id=${text}&${text}=1&api_key=${text}&type=${text}`;
    record("a query", await send(recording, `/applications?${query}`, { headers: authenticated }));
    record(
      "a query",
      await send(recording, `/events?target=${text}&kind=${text}`, { headers: authenticated }),
    );
    record("a query", await send(recording, `/applications?svc-api-key=${text}`));
    for (const message of [text, encodeURIComponent(JSON.stringify({ id: secret }))]) {
      const url = `${getApplicationPath}?connect=v1&encoding=json&message=${message}`;
      record("a query", await send(recording, url, { headers: authenticated }));
    }
  }
  const headers = [
    "authorization",
    "cookie",
    "user-agent",
    "x-request-id",
    "traceparent",
    "tracestate",
    "x-api-key",
    "origin",
    "referer",
    "x-forwarded-for",
    "baggage",
    "if-match",
    secret,
    "idempotency-key",
    "accept",
    "expect",
    "grpc-timeout",
    "connect-timeout-ms",
  ];
  for (const name of headers) {
    const misplaced = { ...authenticated, [name]: secret };
    record(`the header ${name}`, await send(recording, "/whoami", { headers: misplaced }));
    record(
      `the metadata ${name}`,
      await callRaw(recording, createApplicationPath, { headers: misplaced }),
    );
  }
  const traced = {
    ...authenticated,
    traceparent,
    tracestate: `a=${secret}`,
    baggage: `a=${secret}`,
  };
  record("a trace", await send(recording, "/whoami", { headers: traced }));
  record("a trace", await callRaw(recording, createApplicationPath, { headers: traced }));
  const bodies = [
    { name: secret, type: secret, permissions: [secret], [secret]: secret },
    { nonce: secret, permissions: [secret], rules: [{ permission: secret, [secret]: [secret] }] },
    { key: `${secret} `, permission: secret, attributes: { [secret]: secret } },
    secret,
  ];
  for (const path of [
    "/applications",
    "/sessions/authorize",
    "/access/check",
    createApplicationPath,
  ]) {
    for (const body of bodies) {
      const request = { method: "POST", headers: json, body: JSON.stringify(body) };
      record(`a body for ${path}`, await send(recording, path, request));
    }
    record(
      "a body",
      await send(recording, path, { method: "POST", headers: json, body: `{"${secret}` }),
    );
  }
  record(
    "a message",
    await callRaw(recording, createApplicationPath, {
      headers: authenticated,
      body: envelope(secret),
    }),
  );
  record(
    "a type",
    await callRaw(recording, createApplicationPath, {
      headers: { "content-type": secret },
      body: "",
    }),
  );
  record("a method", await sendRaw(recording, `${secret} / HTTP/1.1\r\n\r\n`));
  record("a version", await sendRaw(recording, `GET / ${secret}\r\n\r\n`));
}
