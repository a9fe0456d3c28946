import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";
import type {
  Application,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import { formatRules } from "../grants.js";
import { collect, futureTime, wholeNumber } from "../options.js";
import { type Display, formatTime } from "../output.js";
import { formatDetails } from "../table.js";

/** The options of the optional fields. `--no-…` makes them false, which clears the field. */
export interface FieldFlags {
  readonly description?: string | false;
  readonly externalId?: string | false;
  readonly metadata?: Readonly<Record<string, string>> | false;
  readonly expires?: Date | false;
  readonly allowedOrigin?: string[];
  readonly allowedCidr?: string[];
  readonly sessionQuota?: number;
}

export function fieldOptions(command: Command): Command {
  return command
    .option("--description <text>", "what the application is for")
    .option("--external-id <id>", "id of the application in another system")
    .option("--metadata <key=value>", "pair for your own use; may be repeated", collectPair)
    .option("--expires <time>", "expiry: a time, or a duration such as 30d", futureTime)
    .option(
      "--allowed-origin <origin>",
      "web origin that may use its keys; may be repeated",
      collect,
    )
    .option("--allowed-cidr <network>", "network that may use its keys; may be repeated", collect)
    .option(
      "--session-quota <count>",
      "maximum number of open sessions of a public application",
      wholeNumber("sessions", 1, 1_000_000, 50_000),
    );
}

/** Collects the values of --metadata. They replace an earlier --no-metadata. */
function collectPair(
  text: string,
  before: FieldFlags["metadata"] = {},
): Readonly<Record<string, string>> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new InvalidArgumentError("It must be KEY=VALUE.");
  }
  return { ...before, [key]: value };
}

/** The fields that the options set, for a request. */
export function fieldsOf({ description, externalId, metadata, expires, ...flags }: FieldFlags) {
  return {
    ...(typeof description === "string" && { description }),
    ...(typeof externalId === "string" && { externalId }),
    metadata: metadata || {},
    ...(expires && { expiresAt: timestampFromDate(expires) }),
    allowedOrigins: flags.allowedOrigin ?? [],
    allowedCidrs: flags.allowedCidr ?? [],
    ...(flags.sessionQuota !== undefined && { sessionQuota: flags.sessionQuota }),
  } satisfies MessageInitShape<typeof CreateApplicationRequestSchema>;
}

export interface ClearFlags {
  readonly anyOrigin?: boolean;
  readonly anyCidr?: boolean;
  readonly defaultSessionQuota?: boolean;
}

export function clearOptions(command: Command): Command {
  return command
    .option("--no-description", "remove the description")
    .option("--no-external-id", "remove the external id")
    .option("--no-metadata", "remove all pairs")
    .option("--no-expires", "let it never expire")
    .addOption(new Option("--any-origin", "allow every web origin").conflicts("allowedOrigin"))
    .addOption(new Option("--any-cidr", "allow every network").conflicts("allowedCidr"))
    .addOption(
      new Option("--default-session-quota", "use the default of the service").conflicts(
        "sessionQuota",
      ),
    );
}

/** The update mask of the fields that the options clear. */
export function clearedFields(flags: FieldFlags & ClearFlags): string[] {
  const isCleared = {
    description: flags.description === false,
    external_id: flags.externalId === false,
    metadata: flags.metadata === false,
    expires_at: flags.expires === false,
    allowed_origins: flags.anyOrigin,
    allowed_cidrs: flags.anyCidr,
    session_quota: flags.defaultSessionQuota,
  };
  return Object.entries(isCleared).flatMap(([field, isSet]) => (isSet ? [field] : []));
}

export function formatApplication(application: Application, display: Display): string {
  const { id, name, type, status, permissions, rules, version } = application;
  const details = formatDetails(
    [
      ["id", id],
      ["name", name],
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
      ["created by", application.createdBy],
      ["modified", formatTime(application.modifiedAt)],
      ["modified by", application.modifiedBy],
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
