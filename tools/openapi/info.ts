import type { Json } from "./json.js";

const description = `
Latchkey manages the API keys of your applications and decides what each key may do. For browsers and
mobile apps, which cannot keep a secret, it opens sessions: short-lived keys that have no access until
your backend authorizes them. A *token* in this API is a vaulted data item of your systems, not a
credential.

**Keys.** Every call carries the key of an application or session in a header. The key determines the
tenant: it gives no access to other tenants.

**JSON.** Timestamps are RFC 3339. Responses use UTC with milliseconds; requests accept any offset. An
absent optional field can also be sent as \`null\`. Unknown fields and parameters are refused.

**Errors.** Every error has a body of type \`application/problem+json\` (RFC 9457). Programs should read
its \`code\`, whose meaning never changes; \`detail\` is for people. The \`request_id\` identifies the
request in the logs. Every response also has it in the \`X-Request-Id\` header.

**Other protocols.** The same methods are available over gRPC, gRPC-Web and Connect on the same port.
`;

export const info: Json = {
  title: "Latchkey",
  summary: "API keys with permissions and access rules, and short-lived sessions.",
  description: description.trim().replace(/(?<!\n)\n(?!\n)/g, " "),
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  // The version of the API. A breaking change would get new paths.
  version: "1",
};
