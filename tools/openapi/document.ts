import type { DescService } from "@bufbuild/protobuf";
import type { Schema } from "@bufbuild/protoplugin";
import { defaultKeyHeader } from "../../src/contract/headers.js";
import { contractPackage, createFacts, type Permission } from "../contract/facts.js";
import { commentOf, paragraphs } from "../contract/prose.js";
import { createHeaderFields } from "./header-fields.js";
import { headers } from "./headers.js";
import { info } from "./info.js";
import type { Json } from "./json.js";
import { createOperations } from "./operations.js";
import { createProbes, probesTag } from "./probes.js";
import { createProblems, problemSchema } from "./problems.js";
import { createSchemas } from "./schemas.js";

/** Builds the OpenAPI document of every method with a REST path. */
export function createDocument({ files, allFiles }: Schema): Json {
  const facts = createFacts(allFiles);
  const schemas = createSchemas(facts);
  const problems = createProblems();
  const headerFields = createHeaderFields(facts);
  const describe = createOperations({ facts, schemas, problems, headerFields });

  const ours = files.filter(({ proto }) => proto.package === contractPackage);
  const tags: Json[] = [];
  const paths: Record<string, Json> = {};
  for (const service of ours.flatMap((file) => file.services)) {
    const methods = service.methods.flatMap((method) => {
      const http = facts.http(method);
      return http ? [{ method, http }] : [];
    });
    if (methods.length > 0) {
      tags.push({
        name: tagOf(service),
        description: describeService(service, facts.permissions(service)),
      });
    }
    for (const { method, http } of methods) {
      paths[http.path] = {
        ...paths[http.path],
        [http.verb]: describe(method, http, tagOf(service)),
      };
    }
  }

  return {
    openapi: "3.1.0",
    info,
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
      },
      headers: { ...headers, ...headerFields.components },
      responses: problems.components,
      schemas: { ...schemas.components, Problem: problemSchema },
    },
  };
}

/** The resource of a service in the plural. */
function tagOf({ name }: DescService): string {
  return name.replace(/Service$/, "").replace(/[^s]$/, "$&s");
}

function describeService(
  service: DescService,
  permissions: readonly Permission[],
): string | undefined {
  const rows = permissions.map(({ name, allows }) => `- \`${name}\`: ${allows}`);
  return paragraphs(
    commentOf(service),
    rows.length > 0 ? `Permissions:\n\n${rows.join("\n")}` : "",
  );
}
