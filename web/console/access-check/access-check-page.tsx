import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { CircleHelp } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import {
  AccessService,
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { mayContainKey } from "../../../src/contract/key-text.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { useKnownPermissions, usePermissionSuggestions } from "../rules/known-permissions.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Combobox } from "../ui/combobox.js";
import { Card, EmptyState, Skeleton } from "../ui/display.js";
import { TextField } from "../ui/fields.js";
import { useDebounced } from "../ui/hooks.js";
import { Page, Problem } from "../ui/page.js";
import { useQueryParams } from "../ui/query-params.js";
import { useFieldErrors } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { DecisionDetails, DecisionSummary, SampleToken } from "./decision.js";
import { principalOfOwnKey, usePrincipal } from "./principal.js";
import {
  type ChosenPrincipal,
  PrincipalChoice,
  principalFromParams,
  principalToParams,
} from "./principal-choice.js";

/** Explains access decisions. */
export default function AccessCheckPage() {
  const { may } = useSignedInKey();
  const [params, setParams] = useQueryParams();
  const [chosen, setChosen] = useState(() => principalFromParams(params, may));
  const [query, setQuery] = useState(() => queryFromParams(params));
  const search = params.toString();
  /** The query string that the form itself wrote last. */
  const ownSearch = useRef(search);
  const shown = useDebounced(toParams(chosen, query).toString());
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the form is written to the URL.
  useEffect(() => {
    if (shown !== search) {
      ownSearch.current = shown;
      setParams(new URLSearchParams(shown), { replace: true });
    }
  }, [shown]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another URL, for example of a link in the menu, replaces the form.
  useEffect(() => {
    if (search !== ownSearch.current) {
      ownSearch.current = search;
      setChosen(principalFromParams(params, may));
      setQuery(queryFromParams(params));
    }
  }, [search]);
  const request = useMemo(() => toRequest(query, chosen.key), [query, chosen.key]);
  const found = useFieldErrors(CheckAccessRequestSchema, request);
  // A request without a key is not sent: the console decides about a chosen application itself.
  const { key: keyErrors, request: _withoutPrincipal, ...errors } = found;

  const isComplete = Object.keys(errors).length === 0 && query.permission !== "";
  const isReady = isComplete && (chosen.by !== "key" || (chosen.key !== "" && !keyErrors));
  return (
    <Page
      title="Why?"
      description="Check whether a principal may use a permission on a token (a vaulted data item). Rules are evaluated in order, and the first match decides."
    >
      <div className="access-check">
        <Card label="Request" hasHeading={false}>
          <PrincipalChoice chosen={chosen} keyErrors={keyErrors} onChange={setChosen} />
          <QueryFields query={query} errors={errors} onChange={setQuery} />
        </Card>
        <div className="access-check-decision">
          {isReady ? (
            <DecisionFor chosen={chosen} request={request} />
          ) : (
            <Card label="Decision" hasHeading={false}>
              <EmptyState icon={CircleHelp} title="Choose a principal and a permission">
                The decision, the rules that led to it and what a caller would see appear here.
              </EmptyState>
            </Card>
          )}
        </div>
      </div>
    </Page>
  );
}

/** The form in the URL. What may be a key of this service is left out. */
function toParams(chosen: ChosenPrincipal, query: AccessQuery): URLSearchParams {
  const fields = queryFields.filter((name) => query[name] !== "" && !mayContainKey(query[name]));
  return new URLSearchParams([
    ...principalToParams(chosen),
    ...fields.map((name) => [name, query[name]]),
  ]);
}

interface DecisionForProps {
  readonly chosen: ChosenPrincipal;
  readonly request: CheckAccessRequest;
}

function DecisionFor({ chosen, request }: DecisionForProps) {
  const { me } = useSignedInKey();
  switch (chosen.by) {
    case "key":
      return <KeyDecision request={request} />;
    case "me":
      return <DecisionDetails request={request} principal={principalOfOwnKey(me)} />;
    case "application":
      return chosen.applicationId === "" ? (
        <p className="muted">Choose an application.</p>
      ) : (
        <PrincipalDecision request={request} applicationId={chosen.applicationId} />
      );
    case "session":
      return isId(chosen.sessionId) ? (
        <PrincipalDecision request={request} sessionId={chosen.sessionId} />
      ) : (
        <p className="muted">Enter a session ID, not a key.</p>
      );
  }
}

interface QueryFieldsProps {
  readonly query: AccessQuery;
  readonly errors: FieldErrors;
  onChange(query: AccessQuery): void;
}

function QueryFields({ query, errors, onChange }: QueryFieldsProps) {
  const known = useKnownPermissions();
  const suggestions = usePermissionSuggestions(query.permission);

  function field(
    name: keyof AccessQuery,
    label: string,
    path: string,
    placeholder: string,
  ): ReactNode {
    return (
      <TextField
        label={label}
        errors={query[name] === "" ? [] : errors[path]}
        placeholder={placeholder}
        autoCapitalize="none"
        value={query[name]}
        onChange={(value) => onChange({ ...query, [name]: value })}
      />
    );
  }

  return (
    <>
      <Combobox
        label="Permission"
        hint={known?.find(({ name }) => name === query.permission)?.allows}
        placeholder="token:read"
        errors={query.permission === "" ? [] : errors.permission}
        suggestions={suggestions}
        text={query.permission}
        onText={(permission) => onChange({ ...query, permission: permission.trim() })}
        onChoose={(permission) => onChange({ ...query, permission })}
      />
      <div className="access-check-pair">
        {field("token", "Token ID", "token.id", "card-4242")}
        {field("container", "Token container", "token.container", "/pci/")}
      </div>
      <div className="access-check-pair">
        {field("origin", "Origin", "origin", "https://shop.example.com")}
        {field("address", "Address", "address", "203.0.113.7")}
      </div>
    </>
  );
}

/** The fields of the form, by their names in the URL. Empty ones are left out of the request. */
const queryFields = ["permission", "token", "container", "origin", "address"] as const;

type AccessQuery = Readonly<Record<(typeof queryFields)[number], string>>;

function queryFromParams(params: URLSearchParams): AccessQuery {
  return Object.fromEntries(
    queryFields.map((name) => [name, params.get(name) ?? ""]),
  ) as AccessQuery;
}

function toRequest(query: AccessQuery, key: string): CheckAccessRequest {
  const { permission, token: id, container, origin, address } = query;
  const token = { ...(id !== "" && { id }), ...(container !== "" && { container }) };
  return create(CheckAccessRequestSchema, {
    ...(key !== "" && { principal: { case: "key", value: key } }),
    permission,
    ...(Object.keys(token).length > 0 && { token }),
    ...(origin !== "" && { origin }),
    ...(address !== "" && { address }),
  });
}

/** The decision of the service about a key, with its rules if the signed-in key may read them. */
function KeyDecision({ request }: { readonly request: CheckAccessRequest }) {
  const debounced = useDebounced(request);
  const {
    data: decision,
    error,
    dataUpdatedAt,
    isPlaceholderData,
  } = useQuery(AccessService.method.checkAccess, debounced, {
    placeholderData: keepPreviousData,
    // Do not cache the key.
    gcTime: 0,
  });
  const isExpired = decision?.reason === "expired";
  const found = usePrincipal({
    applicationId:
      isExpired || decision?.sessionId !== undefined ? undefined : decision?.applicationId,
    sessionId: isExpired ? undefined : decision?.sessionId,
    decidedAt: dataUpdatedAt,
  });
  // Placeholder data belongs to the previous request.
  if (!decision || isPlaceholderData) {
    return error ? <Problem error={error} /> : <Skeleton label="Checking" />;
  }
  if (found.principal) {
    return <DecisionDetails request={debounced} principal={found.principal} actual={decision} />;
  }
  return (
    <>
      <DecisionSummary decision={decision} permission={debounced.permission} />
      {found.missing !== undefined && (
        <p className="hint">
          Your key needs the permission <code>{found.missing}</code> to show the rules.
        </p>
      )}
      <Problem error={found.error} />
      <SampleToken decision={decision} permission={debounced.permission} />
    </>
  );
}

interface PrincipalDecisionProps {
  readonly request: CheckAccessRequest;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** A preview for an application or a session. */
function PrincipalDecision({ request, ...reference }: PrincipalDecisionProps) {
  const { principal, isLoading, error, missing } = usePrincipal(reference);
  if (missing !== undefined) {
    return (
      <p className="muted">
        Your key needs the permission <code>{missing}</code>.
      </p>
    );
  }
  if (isLoading) {
    return <Skeleton label="Loading the principal" />;
  }
  return principal ? (
    <DecisionDetails request={request} principal={principal} />
  ) : (
    <Problem error={error} />
  );
}
