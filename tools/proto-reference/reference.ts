import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Schema } from "@bufbuild/protoplugin";
import { defaultKeyHeader } from "../../src/contract/headers.js";
import { createExamples } from "../contract/examples.js";
import { contractPackage, createFacts, type Facts } from "../contract/facts.js";
import { commentOf, splitSummary } from "../contract/prose.js";
import { createValidate } from "../contract/validate.js";
import { type Block, codeOf, heading, linkTo, prose } from "./blocks.js";
import { describeErrors } from "./errors.js";
import { describeMessages } from "./messages.js";
import { describeMethod, isStream } from "./methods.js";

const introduction = `
Every service, method, message and error of the contract, made from the comments and options of \`proto/latchkey/v1\`.

A call goes to the path of its method, over gRPC, gRPC-Web or Connect, with the key in the header \`${defaultKeyHeader}\` unless the operator chose another. Methods that have a REST path are reached there as well. Examples are in JSON, with the names of the protos.

Beside these the server has \`grpc.health.v1.Health\` and reflection (\`grpc.reflection.v1\` and \`v1alpha\`), which need no key.
`.trim();

const ofErrors =
  "An error over gRPC and Connect carries its code in capitals as the `reason` of a `google.rpc.ErrorInfo`. Every error has a request id, under which the operator finds the call in the logs.";

const ofMessages =
  "Of the types from elsewhere, a `google.protobuf.Timestamp` is written in JSON as `2030-01-31T12:00:00.000Z`, a `google.protobuf.Duration` in seconds as `3600s`, a `google.protobuf.FieldMask` as the names of fields in lowerCamelCase with commas between them, and `google.protobuf.Empty` has no fields.";

/** The whole contract in words. */
export function createReference({ files, allFiles }: Schema): Block[] {
  const facts = createFacts(allFiles);
  const examples = createExamples(facts, createValidate(facts));
  const services = files
    .filter(({ proto }) => proto.package === contractPackage)
    .flatMap((file) => file.services);
  const methods = services.flatMap((service) => service.methods);
  return [
    heading(1, "Proto reference"),
    ...prose(introduction),
    heading(2, "Methods"),
    overviewOf(facts, methods),
    ...services.flatMap((service) => [
      ...describeService(facts, service),
      ...service.methods.flatMap((method) => describeMethod(facts, examples, method)),
    ]),
    heading(2, "Messages"),
    ...prose(ofMessages),
    ...describeMessages(facts, services),
    heading(2, "Errors"),
    ...prose(ofErrors),
    describeErrors(facts, methods),
  ];
}

function overviewOf(facts: Facts, methods: readonly DescMethod[]): Block {
  return {
    kind: "table",
    head: ["Method", "What it does", "REST"],
    rows: methods.map((method) => {
      const http = facts.http(method);
      return [
        linkTo(method.name) + (isStream(method) ? " (a stream)" : ""),
        `${splitSummary(commentOf(method))[0]}.`,
        http ? codeOf(`${http.verb.toUpperCase()} ${http.path}`) : "",
      ];
    }),
  };
}

function describeService(facts: Facts, service: DescService): Block[] {
  const items = facts.permissions(service).map(({ name, allows }) => `${codeOf(name)}: ${allows}`);
  return [
    heading(2, service.name),
    ...prose(commentOf(service)),
    ...(items.length > 0 ? [...prose("Permissions:"), { kind: "list", items } as const] : []),
  ];
}
