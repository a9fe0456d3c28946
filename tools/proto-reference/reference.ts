import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Schema } from "@bufbuild/protoplugin";
import { defaultKeyHeader } from "../../src/contract/headers.js";
import { type Contract, contractPackage, readContract } from "../contract/contract.js";
import { createExamples, createValidate } from "../contract/examples.js";
import { getComment, splitSummary } from "../contract/prose.js";
import { type Block, heading, inlineCode, linkTo, prose } from "./blocks.js";
import { describeMessages } from "./messages.js";
import { describeErrors, describeMethod, isStream } from "./methods.js";

const introduction = `
Every service, method, message and error of the API, generated from the comments and options in \`proto/latchkey/v1\`.

Call a method at its path over gRPC, gRPC-Web or Connect, with the key in the \`${defaultKeyHeader}\` header unless the operator configured another. Some methods also have a REST path. Examples are in JSON with the field names of the protos. A *token* is a vaulted data item of your systems, not a credential.

The server also offers \`grpc.health.v1.Health\` and reflection (\`grpc.reflection.v1\` and \`v1alpha\`), which need no key.
`.trim();

const errorsIntroduction =
  "Over gRPC and Connect, the `reason` of `google.rpc.ErrorInfo` is the code in capitals. Every error has a request id, which identifies the call in the logs.";

const messagesIntroduction =
  "In JSON, a `google.protobuf.Timestamp` is written as `2030-01-31T12:00:00.000Z`, a `google.protobuf.Duration` in seconds as `3600s`, and a `google.protobuf.FieldMask` as field names in lowerCamelCase, separated by commas.";

/** Builds the reference of the whole contract. */
export function createReference({ files, allFiles }: Schema): Block[] {
  const contract = readContract(allFiles);
  const examples = createExamples(contract, createValidate(contract));
  const services = files
    .filter(({ proto }) => proto.package === contractPackage)
    .flatMap((file) => file.services);
  const methods = services.flatMap((service) => service.methods);
  return [
    heading(1, "Proto reference"),
    ...prose(introduction),
    heading(2, "Methods"),
    createOverview(contract, methods),
    ...services.flatMap((service) => [
      ...describeService(contract, service),
      ...service.methods.flatMap((method) => describeMethod(contract, examples, method)),
    ]),
    heading(2, "Messages"),
    ...prose(messagesIntroduction),
    ...describeMessages(contract, services),
    heading(2, "Errors"),
    ...prose(errorsIntroduction),
    describeErrors(contract, methods),
  ];
}

function createOverview(contract: Contract, methods: readonly DescMethod[]): Block {
  return {
    kind: "table",
    head: ["Method", "Description", "REST"],
    rows: methods.map((method) => {
      const paths = contract
        .http(method)
        .map(({ verb, path }) => inlineCode(`${verb.toUpperCase()} ${path}`));
      return [
        linkTo(method.name) + (isStream(method) ? " (stream)" : ""),
        `${splitSummary(getComment(method))[0]}.`,
        paths.join(", "),
      ];
    }),
  };
}

function describeService(contract: Contract, service: DescService): Block[] {
  const items = contract
    .permissions(service)
    .map(({ name, allows }) => `${inlineCode(name)}: ${allows}`);
  return [
    heading(2, service.name),
    ...prose(getComment(service)),
    ...(items.length > 0 ? [...prose("Permissions:"), { kind: "list", items } as const] : []),
  ];
}
