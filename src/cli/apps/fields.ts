import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError } from "commander";
import type {
  Application,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import { formatRules } from "../grants.js";
import { collect, parseFutureTime, wholeNumberParser } from "../option-values.js";
import { clearOption } from "../options.js";
import { type Display, formatTime } from "../output.js";
import { formatDetails } from "../table.js";
import { type NameOf, nameDetail } from "./find-application.js";

/** The options of the optional fields. */
export interface FieldFlags {
  readonly description?: string;
  readonly externalId?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly expires?: Date;
  readonly allowedOrigin?: string[];
  readonly allowedCidr?: string[];
  readonly sessionQuota?: number;
}

export function fieldOptions(command: Command): Command {
  return command
    .option("--description <text>", "what the application is for")
    .option("--external-id <id>", "id of the application in another system")
    .option(
      "--metadata <key=value>",
      "pair for your own use; may be repeated; an update replaces all pairs",
      collectPair,
    )
    .option(
      "--expires <time>",
      "when it expires and is deleted; 30d means in 30 days",
      parseFutureTime,
    )
    .option(
      "--allowed-origin <origin>",
      "web origin that may use its keys; may be repeated",
      collect,
    )
    .option("--allowed-cidr <network>", "network that may use its keys; may be repeated", collect)
    .option(
      "--session-quota <count>",
      "maximum number of authorized sessions of a public application",
      wholeNumberParser("sessions", 1, 1_000_000, 50_000),
    );
}

/** Collects the values of --metadata. */
function collectPair(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new InvalidArgumentError("It must be KEY=VALUE.");
  }
  if (Object.hasOwn(before, key)) {
    throw new InvalidArgumentError("Its key is used more than once.");
  }
  return { ...before, [key]: value };
}

/** The fields that the options set, for a request. */
export function fieldsOf({ description, externalId, metadata, expires, ...flags }: FieldFlags) {
  return {
    ...(description !== undefined && { description }),
    ...(externalId !== undefined && { externalId }),
    metadata: metadata ?? {},
    ...(expires && { expiresAt: timestampFromDate(expires) }),
    allowedOrigins: flags.allowedOrigin ?? [],
    allowedCidrs: flags.allowedCidr ?? [],
    ...(flags.sessionQuota !== undefined && { sessionQuota: flags.sessionQuota }),
  } satisfies MessageInitShape<typeof CreateApplicationRequestSchema>;
}

export interface ClearFlags {
  readonly noDescription?: boolean;
  readonly noExternalId?: boolean;
  readonly noMetadata?: boolean;
  readonly noExpires?: boolean;
  readonly anyOrigin?: boolean;
  readonly anyCidr?: boolean;
  readonly defaultSessionQuota?: boolean;
}

export function clearOptions(command: Command): Command {
  return command
    .addOption(clearOption("--no-description", "remove the description", "description"))
    .addOption(clearOption("--no-external-id", "remove the external id", "externalId"))
    .addOption(clearOption("--no-metadata", "remove all pairs", "metadata"))
    .addOption(clearOption("--no-expires", "let it never expire", "expires"))
    .addOption(clearOption("--any-origin", "allow every web origin", "allowedOrigin"))
    .addOption(clearOption("--any-cidr", "allow every network", "allowedCidr"))
    .addOption(
      clearOption("--default-session-quota", "use the default of the service", "sessionQuota"),
    );
}

/** The options that change grants and the name. */
export interface GrantFlags {
  readonly name?: string;
  readonly permission?: string[];
  readonly addPermission?: string[];
  readonly removePermission?: string[];
  readonly rules?: string;
}

/** The update mask of the fields that the options set or clear. */
export function updatedFields(flags: GrantFlags & FieldFlags & ClearFlags): string[] {
  const options = {
    name: [flags.name],
    permissions: [flags.permission, flags.addPermission, flags.removePermission],
    rules: [flags.rules],
    description: [flags.description, flags.noDescription],
    external_id: [flags.externalId, flags.noExternalId],
    metadata: [flags.metadata, flags.noMetadata],
    expires_at: [flags.expires, flags.noExpires],
    allowed_origins: [flags.allowedOrigin, flags.anyOrigin],
    allowed_cidrs: [flags.allowedCidr, flags.anyCidr],
    session_quota: [flags.sessionQuota, flags.defaultSessionQuota],
  };
  return Object.entries(options).flatMap(([field, values]) =>
    values.some((value) => value !== undefined) ? [field] : [],
  );
}

export function formatApplication(
  application: Application,
  nameOf: NameOf,
  display: Display,
): string {
  const { id, name, type, status, permissions, rules, version } = application;
  const details = formatDetails(
    [
      ["name", name],
      ["id", id],
      ["description", application.description],
      ["external id", application.externalId],
      ["metadata", formatMetadata(application)],
      ["type", type],
      ["status", status],
      ["permissions", permissions.join(" ")],
      ["origins", application.allowedOrigins.join(" ")],
      ["networks", application.allowedCidrs.join(" ")],
      ["session quota", application.sessionQuota?.toString()],
      ["created", formatTime(application.createdAt)],
      nameDetail("created by", application.createdBy, nameOf),
      ["modified", formatTime(application.modifiedAt)],
      nameDetail("modified by", application.modifiedBy, nameOf),
      ["expires", formatTime(application.expiresAt)],
      ["last used", formatTime(application.lastUsedAt)],
      ["tenant", application.tenantId],
      ["version", version],
    ],
    display,
  );
  return details + formatRules(rules, display);
}

/** One pair per line. A value with line breaks must not look like several pairs. */
function formatMetadata({ metadata }: Application): string {
  return Object.entries(metadata)
    .map(([key, value]) => escapeUnprintable(`${key}=${value}`))
    .join("\n");
}
