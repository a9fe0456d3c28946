import type { Json } from "./json.js";

const description = `
Latchkey keeps the API keys of your applications and says what each key may do. For browsers and mobile
apps, which cannot keep a secret, it opens sessions: short-lived keys that have no access until your
backend gives them some.

**Keys.** Every call carries the key of an application or a session in a header. The key decides the
tenant: nothing of other tenants can be seen or touched with it.

**JSON.** Dates are RFC 3339, written in UTC with milliseconds, and read with any offset. An optional
field that is absent may also be sent as \`null\`. A field or parameter that is not described here is
refused, so that a slip of the pen cannot go unnoticed.

**Errors.** Every error has a body of type \`application/problem+json\` (RFC 9457). Programs go by its
\`code\`, which does not change; people read its \`detail\`. Its \`request_id\`, which every answer also
carries as the header \`X-Request-Id\`, is what an operator needs to find the request in the logs.

**Other protocols.** The same methods are served over gRPC, gRPC-Web and Connect on the same port.
`;

export const info: Json = {
  title: "Latchkey",
  summary: "API keys with permissions and access rules, and short-lived sessions.",
  description: description.trim().replace(/(?<!\n)\n(?!\n)/g, " "),
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  // The version of the interface. A breaking change gets paths of its own beside these.
  version: "1",
};
