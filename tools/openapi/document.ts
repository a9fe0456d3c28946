import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Schema } from "@bufbuild/protoplugin";
import { defaultKeyHeader, gatewayKeyHeader } from "../../src/contract/headers.js";
import { contractPackage, type Permission, readContract } from "../contract/contract.js";
import { formatList, getComment, paragraphs } from "../contract/prose.js";
import { createHeaderFields, headers } from "./headers.js";
import { createOperations } from "./operations.js";
import { createProbes, probesTag } from "./probes.js";
import { createProblems, problemSchema, violationSchema } from "./problems.js";
import { createSchemas, type Json } from "./schemas.js";

/** Builds the OpenAPI document of every method with a REST path. */
export function createDocument({ files, allFiles }: Schema): Json {
  const contract = readContract(allFiles);
  const schemas = createSchemas(contract);
  const problems = createProblems();
  const headerFields = createHeaderFields(contract);
  const describe = createOperations({ contract, schemas, problems, headerFields });

  const ours = files.filter(({ proto }) => proto.package === contractPackage);
  const services = ours.flatMap((file) => file.services);
  const streams = services
    .flatMap((service) => service.methods)
    .filter(({ methodKind }) => methodKind !== "unary");
  const tags: Json[] = [];
  const paths: Record<string, Json> = {};
  for (const service of services) {
    const bindings = service.methods.flatMap((method) =>
      contract.http(method).map((http) => ({ method, http })),
    );
    if (bindings.length > 0) {
      tags.push({
        name: toTag(service),
        description: describeService(service, contract.permissions(service)),
      });
    }
    for (const { method, http } of bindings) {
      paths[http.path] = {
        ...paths[http.path],
        [http.verb]: describe(method, http, toTag(service)),
      };
    }
  }

  return {
    openapi: "3.1.0",
    info: describeApi(streams),
    servers: [{ url: "/" }],
    security: [{ apiKey: [] }],
    tags: [...tags, probesTag],
    paths: { ...paths, ...createProbes(problems) },
    components: {
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          // The only place that names the header, because operators can configure another.
          name: defaultKeyHeader,
          description: "The key of an application or of a session.",
        },
        gatewayKey: {
          type: "apiKey",
          in: "header",
          name: gatewayKeyHeader,
          description: "The key of a gateway.",
        },
      },
      headers: { ...headers, ...headerFields.components },
      responses: problems.components,
      schemas: { ...schemas.components, Problem: problemSchema, Violation: violationSchema },
    },
  };
}

/** Services that are named after a standard, or are not about a resource. */
const tags: Readonly<Record<string, string>> = {
  AuthZenService: "AuthZEN",
  IntrospectionService: "Introspection",
  OverviewService: "Overview",
};

/** The resource of a service in the plural, or its own name. */
function toTag({ name }: DescService): string {
  return tags[name] ?? name.replace(/Service$/, "").replace(/[^s]$/, "$&s");
}

function describeService(
  service: DescService,
  permissions: readonly Permission[],
): string | undefined {
  const rows = permissions.map(({ name, allows }) => `- \`${name}\`: ${allows}`);
  return paragraphs(
    getComment(service),
    rows.length > 0 ? `Permissions:\n\n${rows.join("\n")}` : "",
  );
}

const description = `
Latchkey manages the API keys of your applications and decides what each key may do. For browsers and
mobile apps, which cannot keep a secret, it opens sessions: short-lived keys that have no access until
your backend authorizes them. A *token* in this API is a vaulted data item of your systems, not a
credential.

**Keys.** A call carries the key of an application or session in a header, unless the operation requires
none. The key determines the tenant: it gives no access to other tenants.

**JSON.** Timestamps are RFC 3339. Responses use UTC with milliseconds; requests accept any offset.
\`null\` means absent, but in an update it clears an optional field. Unknown fields and parameters are
refused. Responses may gain fields, and values where a schema lists them as \`x-extensible-enum\`: accept
those that you do not know.

**Errors.** Every error has a body of type \`application/problem+json\` (RFC 9457). Programs should read
its \`code\`, whose meaning never changes; \`detail\` is for people. The \`request_id\` identifies the
request in the logs. Every response also has it in the \`X-Request-Id\` header.

**Other protocols.** The same methods are available over gRPC, gRPC-Web and Connect on the same port.
Streams are available only there: STREAMS.
`;

function describeApi(streams: readonly DescMethod[]): Json {
  const links = streams.map(({ name }) => `[\`${name}\`](/docs/proto#${name.toLowerCase()})`);
  return {
    title: "Latchkey",
    summary: "API keys with permissions and access rules, and short-lived sessions.",
    description: description
      .trim()
      .replace(/(?<!\n)\n(?!\n)/g, " ")
      .replace("STREAMS", formatList(links, "conjunction")),
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    // The version of the API. A breaking change would get new paths.
    version: "1",
  };
}
