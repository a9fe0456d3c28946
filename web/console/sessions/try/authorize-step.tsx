import { create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { useMemo, useState } from "react";
import { type AccessRule, AccessRuleSchema } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import {
  AuthorizeSessionRequestSchema,
  SessionService,
} from "../../../../gen/latchkey/v1/session_service_pb.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { serviceNow } from "../../sign-in/connection.js";
import { useAccess } from "../../sign-in/signed-in-key.js";
import { type Option, Select } from "../../ui/select.js";
import { errorsOfNames, grantRequired, useFieldErrors } from "../../validation/field-errors.js";
import { demoPermissions, type StepViewProps } from "./flow.js";
import { CurlCommand, KeyChoice, Step } from "./step.js";

/** Minutes until the session expires. */
const lifetimes: readonly Option[] = [
  { value: "", label: "unchanged" },
  { value: "5", label: "in 5 minutes" },
  { value: "15", label: "in 15 minutes" },
  { value: "60", label: "in 1 hour" },
];

/** The backend authorizes the session with the nonce. */
export function AuthorizeStep({ flow, change, isArrival }: StepViewProps) {
  const { may } = useAccess();
  const [permissions, setPermissions] = useState(() =>
    flow.demo ? demoPermissions(may).filter((name) => name !== "token:use") : [],
  );
  const [rules, setRules] = useState<readonly AccessRule[]>([]);
  const [lifetime, setLifetime] = useState("");
  const request = useMemo(
    () =>
      create(AuthorizeSessionRequestSchema, {
        nonce: flow.session?.nonce ?? "",
        permissions,
        rules: [...rules],
      }),
    [flow.session, permissions, rules],
  );
  const errors = useFieldErrors(AuthorizeSessionRequestSchema, request);

  async function authorize(backend: Transport): Promise<void> {
    await createClient(SessionService, backend).authorizeSession({
      ...request,
      ...(lifetime !== "" && {
        expiresAt: timestampFromMs(serviceNow() + Number(lifetime) * 60_000),
      }),
    });
    change({ backend, step: flow.step + 1 });
  }

  return (
    <Step
      title="Authorize the session as the backend"
      isArrival={isArrival}
      description={
        <p>
          The browser has sent the nonce to its backend, which has signed in the user. The backend
          uses its private key to grant permissions to the session. It can grant only permissions
          that it has itself.
        </p>
      }
    >
      <KeyChoice
        type="private"
        label="Private key"
        demoKey={flow.demo?.backend.key}
        action="Authorize the session"
        isBlocked={Object.keys(errors).length > 0}
        act={authorize}
      >
        <PermissionInput
          label="Direct permissions"
          hint="Granted without a rule."
          value={permissions}
          onChange={setPermissions}
          kind="session"
          errors={errorsOfNames(errors, "permissions", permissions)}
        />
        <RuleEditor kind="session" rules={rules} onChange={setRules} errors={errors} />
        {errors.request && <p className="field-error">{grantRequired}</p>}
        <Select label="Expires" options={lifetimes} value={lifetime} onChange={setLifetime} />
      </KeyChoice>
      <CurlCommand
        method={SessionService.method.authorizeSession}
        keyVariable="PRIVATE_KEY"
        body={curlBody(permissions, rules)}
      />
    </Step>
  );
}

function curlBody(permissions: readonly string[], rules: readonly AccessRule[]): object {
  const shown = rules.map((rule) => toJson(AccessRuleSchema, rule, { useProtoFieldName: true }));
  return {
    nonce: "$NONCE",
    ...(permissions.length > 0 && { permissions }),
    ...(rules.length > 0 && { rules: shown }),
  };
}
