import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Column, detailsText, type Look, tableText } from "../table.js";
import { momentText, relativeText } from "../time-text.js";

export const applicationColumns: readonly Column<Application>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name }) => name, shrinks: true },
  { title: "TYPE", text: ({ type }) => type },
  {
    title: "STATUS",
    text: ({ status }) => status,
    paint: (text, { status }, { good, warn }) => (status === "enabled" ? good : warn)(text),
  },
  { title: "EXPIRES", text: (it) => relativeText(it.expiresAt), isExtra: true },
  {
    title: "LAST USED",
    text: (it) => relativeText(it.lastUsedAt, Date.now(), "never"),
    isExtra: true,
  },
  { title: "PERMISSIONS", text: permissionsText, shrinks: true, isExtra: true },
];

function permissionsText({ permissions, rules }: Application): string {
  const count = rules.length === 1 ? "1 rule" : `${rules.length} rules`;
  return [...permissions, ...(rules.length > 0 ? [`+${count}`] : [])].join(" ");
}

/** All that is known of an application. */
export function applicationText(application: Application, look: Look): string {
  const { id, name, type, status, permissions, rules, version } = application;
  const facts = detailsText(
    [
      ["id", id],
      ["name", name],
      ["type", type],
      ["status", status],
      ["permissions", permissions.join(" ")],
      ["origins", application.allowedOrigins.join(" ")],
      ["networks", application.allowedCidrs.join(" ")],
      ["session quota", application.sessionQuota?.toString()],
      ["created", momentText(application.createdAt)],
      ["created by", application.createdBy],
      ["modified", momentText(application.modifiedAt)],
      ["modified by", application.modifiedBy],
      ["expires", momentText(application.expiresAt)],
      ["last used", momentText(application.lastUsedAt)],
      ["tenant", application.tenantId],
      ["version", version],
    ],
    look,
  );
  return facts + rulesText(rules, look);
}

const ruleColumns: readonly Column<AccessRule>[] = [
  { title: "PRIORITY", text: ({ priority }) => String(priority) },
  { title: "TRANSFORM", text: ({ transform }) => transform },
  { title: "TOKENS", text: tokensText, shrinks: true },
  { title: "PERMISSIONS", text: ({ permissions }) => permissions.join(" "), shrinks: true },
  {
    title: "DESCRIPTION",
    text: ({ description = "" }) => description,
    shrinks: true,
    isExtra: true,
  },
];

function tokensText({ container, conditions }: AccessRule): string {
  const tests = conditions.map(({ attribute, operator, value }) =>
    operator === "equals" ? `${attribute} = ${value}` : `${attribute} ${operator} ${value}`,
  );
  return container ?? (tests.join(" and ") || "all");
}

/** Rules below what they belong to, in the order in which they are tried. */
export function rulesText(rules: readonly AccessRule[], look: Look): string {
  const inOrder = rules.toSorted((one, other) => one.priority - other.priority);
  return rules.length > 0 ? `\n${tableText(ruleColumns, inOrder, look)}` : "";
}
