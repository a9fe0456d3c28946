import { readFileSync } from "node:fs";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import {
  defaultKeyHeader,
  rateLimitHeader,
  rateLimitPolicyHeader,
} from "../../src/contract/headers.js";
import {
  addressNotAllowed,
  applicationNotFound,
  bodyTooLarge,
  deadlineExceeded,
  eventNotFound,
  headersTooLarge,
  idempotencyConflict,
  idempotencyKeyReused,
  invalidSignature,
  keyNotFound,
  nonceNotFound,
  nonceUsed,
  originNotAllowed,
  overloaded,
  Problem,
  type ProblemFacts,
  pathNotFound,
  permissionDenied,
  rateLimited,
  sessionNotFound,
  sessionQuotaReached,
  shuttingDown,
  tooManyKeys,
  tooManyStreams,
  toProblem,
  unauthenticated,
  unsupportedMediaType,
  urlTooLong,
  versionMismatch,
} from "../../src/errors.js";
import { ExternalIdTaken, LastManager, StoreUnavailable } from "../../src/store/port/errors.js";
import { getCallers } from "./access.js";
import type { Contract } from "./contract.js";

/** An error as the references describe it. */
export interface ProblemType {
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
  readonly cause: string;
  /** An example of its detail. */
  readonly detail: string;
  /** Its example of {@link ProblemFacts}. */
  readonly facts: ProblemFacts;
  /** Its headers in lower case, besides those of every response. */
  readonly headers: readonly string[];
}

/** An example of each error that methods can return. */
const examples: readonly Problem[] = [
  new Problem("invalid_request", "The request cannot be read."),
  unauthenticated({ keyHeader: defaultKeyHeader }),
  invalidSignature(),
  pathNotFound(),
  permissionDenied("The key does not allow this."),
  originNotAllowed("https://shop.example.net"),
  addressNotAllowed("198.51.100.7"),
  applicationNotFound("0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a"),
  keyNotFound("0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d"),
  tooManyKeys(3),
  toProblem(new LastManager()),
  toProblem(new ExternalIdTaken("svc-4711")),
  idempotencyConflict(),
  idempotencyKeyReused(),
  versionMismatch("18"),
  sessionNotFound("0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f"),
  eventNotFound("0198c8a6-1b2c-7d3e-8f40-5a6b7c8d9e0f"),
  nonceNotFound(),
  nonceUsed(),
  bodyTooLarge(1_048_576),
  urlTooLong(8_192),
  headersTooLarge(16_384),
  unsupportedMediaType(["application/json"], { type: "text/plain", encoding: "identity" }),
  rateLimited("Too many calls or checks with this key. Retry in 1 s.", 1_000, 0, [
    rateLimitPolicyHeader,
    "",
    rateLimitHeader,
    "",
  ]),
  sessionQuotaReached("authorized", 10_000, 180_000),
  tooManyStreams(1_000),
  shuttingDown(),
  toProblem(new Error()),
  overloaded(),
  toProblem(new StoreUnavailable()),
  deadlineExceeded(),
];

/** The causes of the errors by code, without links. */
const causes = new Map(
  Array.from(
    readFileSync("docs/reference/errors.md", "utf8").matchAll(/^\| \[`(\w+)`\].* \| (.*) \|$/gm),
    ([, code, cause = ""]) => [code, cause.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")],
  ),
);

/** Returns an error by its code. */
export function problemType(code: string): ProblemType {
  const example = examples.find(({ problemCode }) => problemCode === code);
  const cause = causes.get(code);
  if (!example || cause === undefined) {
    throw new Error(`the error ${code} is not documented`);
  }
  const { status, code: grpc, title, rawMessage, facts, headers } = example;
  // Services can have another key header.
  const detail = rawMessage.replace(` in the ${defaultKeyHeader} header`, "");
  return { status, grpc, title, cause, detail, facts, headers: Object.keys(headers) };
}

/** The errors of a method's own options, and those of idempotency keys. */
export function getMethodErrors(contract: Contract, method: DescMethod): string[] {
  return [
    ...contract.errors(method),
    ...(contract.isReplayable(method) ? ["idempotency_conflict", "idempotency_key_reused"] : []),
  ];
}

/** The errors of authentication and authorization. */
export function getAuthErrors(contract: Contract, method: DescMethod): string[] {
  if (contract.access(method).unauthenticated) {
    return [];
  }
  const isOpen = getCallers(contract, method).length === contract.callerTypes.length;
  return [
    "unauthenticated",
    ...(isOpen && !contract.access(method).permission ? [] : ["permission_denied"]),
    "origin_not_allowed",
    "address_not_allowed",
  ];
}
