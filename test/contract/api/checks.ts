import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CheckAccessRequestSchema,
  type CheckAccessResponse,
  CheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { keepsRules } from "./keeps-rules.js";
import type { ApiSubject } from "./subject.js";
import { createTenant, type Tenant } from "./tenant.js";

export type CheckInit = MessageInitShape<typeof CheckAccessRequestSchema>;

/** Ways to ask in a tenant; every answer is held to the rules of its message. */
export function checksOf({ server, api }: ApiSubject) {
  return {
    createTenant: () => createTenant(server(), api()),

    async check(tenant: Tenant, request: CheckInit): Promise<CheckAccessResponse> {
      const answer = await api().checkAccess(tenant.root.key, request);
      return keepsRules(CheckAccessResponseSchema, answer);
    },
  };
}
