import { create } from "@bufbuild/protobuf";
import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";

/** What the person asks, as it stands in the fields: what is empty is not said. */
export interface Question {
  readonly permission: string;
  readonly tokenId: string;
  readonly container: string;
  readonly origin: string;
  readonly address: string;
}

export const emptyQuestion: Question = {
  permission: "",
  tokenId: "",
  container: "",
  origin: "",
  address: "",
};

/** The question as the service takes it, about a key. */
export function requestOf(question: Question, key: string): CheckAccessRequest {
  const { permission, tokenId, container, origin, address } = question;
  const token = { ...given("id", tokenId), ...given("container", container) };
  return create(CheckAccessRequestSchema, {
    key,
    permission,
    ...(Object.keys(token).length > 0 && { token }),
    ...given("origin", origin),
    ...given("address", address),
  });
}

function given<Name extends string>(name: Name, value: string): { readonly [K in Name]?: string } {
  return (value === "" ? {} : { [name]: value }) as { readonly [K in Name]?: string };
}
