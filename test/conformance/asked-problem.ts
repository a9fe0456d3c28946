import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { Problem } from "../../src/errors.js";
import type { ErrorDefinition } from "./protos.js";

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

/** A problem with the code, the words and the details that a test asks for. */
export class AskedProblem extends Problem {
  constructor({ code, message = "", details }: ErrorDefinition, ...more: readonly Detail[]) {
    super("internal", message);
    Object.assign(this, { code });
    const asked = details.map(({ typeUrl, value }) => ({
      type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
      value,
    }));
    this.details = [...asked, ...more];
  }
}
