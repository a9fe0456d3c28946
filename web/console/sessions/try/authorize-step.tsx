import { create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useMemo, useState } from "react";
import { type AccessRule, AccessRuleSchema } from "../../../../gen/latchkey/v1/access_rule_pb.js";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import {
  AuthorizeSessionRequestSchema,
  SessionService,
} from "../../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../../access/access.js";
import { serviceNow } from "../../access/service-clock.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Field } from "../../ui/fields.js";
import { errorsOfNames, useFieldErrors } from "../../validation/field-errors.js";
import type { StepViewProps } from "./flow.js";
import { demoPermissions } from "./flow.js";
import { KeyChoice } from "./key-choice.js";
import { CurlCommand, Step } from "./step.js";

/** Minutes that the session is to last from now on. None leaves its end as it is. */
const lifetimes: readonly (readonly [label: string, minutes: number | undefined])[] = [
  ["as it was opened", undefined],
  ["5 minutes from now", 5],
  ["15 minutes from now", 15],
  ["1 hour from now", 60],
];

/** The backend gives the session its access, for the nonce. */
export function AuthorizeStep({ flow, change, isArrival }: StepViewProps) {
  const { may } = useAccess();
  const [permissions, setPermissions] = useState(() =>
    flow.demo ? demoPermissions(may).filter((name) => name !== "token:use") : [],
  );
  const [rules, setRules] = useState<readonly AccessRule[]>([]);
  const [lifetime, setLifetime] = useState<number>();
  const { data: known } = useQuery(AccessService.method.listPermissions, { type: "private" });
  const suggestions = known?.data.map(({ name }) => name) ?? [];
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
      ...(lifetime !== undefined && {
        expiresAt: timestampFromMs(serviceNow() + lifetime * 60_000),
      }),
    });
    change({ backend, step: flow.step + 1 });
  }

  return (
    <Step
      title="Authorize it, as the backend does"
      isArrival={isArrival}
      description={
        <p>
          The browser has handed the nonce to its backend, which knows the user. With its private
          key the backend says what this session may do: nothing that it may not do itself.
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
          label="Permissions"
          hint="On everything."
          value={permissions}
          onChange={setPermissions}
          suggestions={suggestions}
          errors={errorsOfNames(errors, "permissions", permissions)}
        />
        <RuleEditor
          kind="session"
          rules={rules}
          onChange={setRules}
          errors={errors}
          suggestions={suggestions}
        />
        <Field label="It ends">
          {(control) => (
            <select
              {...control}
              value={lifetime ?? ""}
              onChange={({ target }) => setLifetime(Number(target.value) || undefined)}
            >
              {lifetimes.map(([label, minutes]) => (
                <option key={label} value={minutes ?? ""}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
      </KeyChoice>
      <CurlCommand
        method={SessionService.method.authorizeSession}
        keyIn="PRIVATE_KEY"
        body={bodyOf(permissions, rules)}
      />
    </Step>
  );
}

function bodyOf(permissions: readonly string[], rules: readonly AccessRule[]): object {
  const shown = rules.map((rule) => toJson(AccessRuleSchema, rule, { useProtoFieldName: true }));
  return {
    nonce: "$NONCE",
    ...(permissions.length > 0 && { permissions }),
    ...(rules.length > 0 && { rules: shown }),
  };
}
