import { send, sendRaw } from "../../support/http/http.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { decoded, type Run, textOf } from "./recording.js";

const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const getRpc = "/latchkey.v1.ApplicationService/GetApplication";
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/** Puts a key where none belongs, over HTTP/1.1 and HTTP/2. */
export async function sendMisplacedKeys(secret: string, run: Run): Promise<void> {
  const { root, finder, written } = run;
  finder.add(secret);
  const keep = (what: string, answer: unknown) =>
    written.push([`the answer to a key in ${what}`, decoded(textOf(answer))]);
  const percent = [...secret]
    .map((letter, at) => (at % 3 ? letter : `%${letter.charCodeAt(0).toString(16)}`))
    .join("");
  const good = { "svc-api-key": root };
  const json = { ...good, "content-type": "application/json" };
  for (const text of [secret, percent]) {
    for (const path of [
      `/${text}`,
      `/applications/${text}`,
      `/applications/${text}/keys/${text}`,
    ]) {
      keep("a path", await send(run, path, { headers: good }));
      keep("a path", await callRaw(run, path, { headers: good, body: envelope("") }));
    }
    const query = `start=${text}&id=${text}&${text}=1&api_key=${text}&type=${text}`;
    keep("a query", await send(run, `/applications?${query}`, { headers: good }));
    keep("a query", await send(run, `/events?target=${text}&kind=${text}`, { headers: good }));
    keep("a query", await send(run, `/applications?svc-api-key=${text}`));
    for (const message of [text, encodeURIComponent(JSON.stringify({ id: secret }))]) {
      const asked = `${getRpc}?connect=v1&encoding=json&message=${message}`;
      keep("a query", await send(run, asked, { headers: good }));
    }
  }
  const headers = [
    ...["authorization", "cookie", "user-agent", "x-request-id", "traceparent", "tracestate"],
    ...["x-api-key", "origin", "referer", "x-forwarded-for", "baggage", "if-match", secret],
    ...["idempotency-key", "accept", "expect", "grpc-timeout", "connect-timeout-ms"],
  ];
  for (const name of headers) {
    const misplaced = { ...good, [name]: secret };
    keep(`the header ${name}`, await send(run, "/whoami", { headers: misplaced }));
    keep(`the metadata ${name}`, await callRaw(run, createRpc, { headers: misplaced }));
  }
  const traced = { ...good, traceparent, tracestate: `a=${secret}`, baggage: `a=${secret}` };
  keep("a trace", await send(run, "/whoami", { headers: traced }));
  keep("a trace", await callRaw(run, createRpc, { headers: traced }));
  const bodies = [
    { name: secret, type: secret, permissions: [secret], [secret]: secret },
    { nonce: secret, permissions: [secret], rules: [{ permission: secret, [secret]: [secret] }] },
    { key: `${secret} `, permission: secret, attributes: { [secret]: secret } },
    secret,
  ];
  for (const path of ["/applications", "/sessions/authorize", "/access/check", createRpc]) {
    for (const body of bodies) {
      const posted = { method: "POST", headers: json, body: JSON.stringify(body) };
      keep(`a body for ${path}`, await send(run, path, posted));
    }
    keep("a body", await send(run, path, { method: "POST", headers: json, body: `{"${secret}` }));
  }
  keep("a message", await callRaw(run, createRpc, { headers: good, body: envelope(secret) }));
  keep("a type", await callRaw(run, createRpc, { headers: { "content-type": secret }, body: "" }));
  keep("a method", await sendRaw(run, `${secret} / HTTP/1.1\r\n\r\n`));
  keep("a version", await sendRaw(run, `GET / ${secret}\r\n\r\n`));
}
