import { useQuery } from "@connectrpc/connect-query";
import { type ReactNode, useId } from "react";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { Field } from "../ui/field.js";
import type { FieldErrors } from "../validation/validate.js";
import type { Question } from "./question.js";

interface QuestionFieldsProps {
  readonly question: Question;
  readonly errors: FieldErrors;
  onChange(question: Question): void;
}

/** What is asked: may it do this, with this token, from there? */
export function QuestionFields({ question, errors, onChange }: QuestionFieldsProps) {
  const { data: known } = useQuery(AccessService.method.listPermissions, {});
  const listId = useId();
  const chosen = known?.data.find(({ name }) => name === question.permission);

  function field(name: keyof Question, label: string, path: string, more: More = {}): ReactNode {
    const { hint, ...attributes } = more;
    return (
      <Field label={label} hint={hint} errors={question[name] === "" ? [] : errors[path]}>
        {(control) => (
          <input
            {...control}
            {...attributes}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            value={question[name]}
            onChange={({ target }) => onChange({ ...question, [name]: target.value })}
          />
        )}
      </Field>
    );
  }

  return (
    <>
      {field("permission", "Permission", "permission", {
        list: listId,
        placeholder: "token:read",
        hint: chosen?.allows,
      })}
      <datalist id={listId}>
        {known?.data.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="why-pair">
        {field("tokenId", "Token id", "token.id", { placeholder: "card-4242" })}
        {field("container", "Token container", "token.container", { placeholder: "/pci/" })}
      </div>
      <div className="why-pair">
        {field("origin", "Origin", "origin", { placeholder: "https://shop.example.com" })}
        {field("address", "Address", "address", { placeholder: "203.0.113.7" })}
      </div>
    </>
  );
}

interface More {
  readonly hint?: string | undefined;
  readonly list?: string;
  readonly placeholder?: string;
}
