import { type FileHandle, open, rm } from "node:fs/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import {
  type Application,
  type ApplicationKey,
  ApplicationSchema,
  ListApplicationKeysResponseSchema,
  RegenerateApplicationKeyRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { defaultGracePeriodMs } from "../../contract/defaults.js";
import { maxDurationOf } from "../../contract/fields.js";
import { quoteIfNeeded } from "../../contract/samples/curl.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import { replaceProfileCommand } from "../call-errors.js";
import { type ClientContext, type ClientFlags, withClient } from "../client.js";
import { CommandError, fileReason, latchkey } from "../errors.js";
import { maxPageSize, readPages, showList } from "../list.js";
import { durationParser, parseId } from "../option-values.js";
import { addExample, clearOption, fileOption, withConnection, yesOption } from "../options.js";
import { formatExactDuration, formatRelativeTime, type Output } from "../output.js";
import { saveProfile } from "../profile.js";
import { getProfile, readProfiles } from "../profiles-file.js";
import { type ConfirmFlags, confirm, promptYesNo } from "../prompt.js";
import { requireReader } from "../stdio.js";
import { type Column, formatDetails, formatSecret, formatTable } from "../table.js";
import {
  applicationArgument,
  findApplication,
  findApplicationId,
  isOwnApplication,
} from "./find-application.js";

const maxGracePeriodMs = maxDurationOf(RegenerateApplicationKeyRequestSchema.field.gracePeriod);

export function addKeys(apps: Command): void {
  const rotate = apps
    .command("rotate")
    .description("create a new key for an application, and print it once")
    .argument(...applicationArgument)
    .addOption(
      new Option("--grace <time>", "how long the current key stays valid")
        .argParser(durationParser("1s", formatExactDuration(maxGracePeriodMs), "1h"))
        .default(defaultGracePeriodMs, formatExactDuration(defaultGracePeriodMs)),
    )
    .addOption(
      clearOption("--no-grace", "revoke the current key and all earlier ones now", "grace"),
    )
    .addOption(yesOption())
    .action(rotateKey);
  withConnection(newKeyOptions(rotate));
  addExample(rotate, "latchkey apps rotate Backend --grace 1h --output-key backend.key.new");

  const keys = apps
    .command("keys")
    .description("list the keys of an application and their last use")
    .argument(...applicationArgument)
    .action(listKeys);
  addExample(withConnection(keys), "latchkey apps keys Backend");

  const revoke = apps
    .command("revoke-key")
    .description("revoke one key of an application")
    .argument(...applicationArgument)
    .argument("<key-id>", "id of the key, as listed by `apps keys`", parseId)
    .addOption(yesOption())
    .action(revokeKey);
  addExample(
    withConnection(revoke),
    "latchkey apps revoke-key Backend 0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d",
  );
}

/** Where a new key is printed. It is shown once and stored nowhere. */
export interface NewKeyFlags {
  readonly keyOnly?: boolean;
  /** A new file of mode 0600, instead of stdout. */
  readonly outputKey?: string;
}

/** The options of {@link NewKeyFlags}. */
export function newKeyOptions(command: Command): Command {
  return command
    .option("--key-only", "print only the new key")
    .addOption(fileOption("--output-key <file>", "write the new key to a new file of mode 0600"));
}

/** Creates a key and prints it. The file is created first: a key that cannot be written would be lost. */
export async function withNewKey(
  { keyOnly = false, outputKey }: NewKeyFlags,
  output: Output,
  create: () => Promise<Application>,
): Promise<Application> {
  if (keyOnly && (output.isJson || outputKey !== undefined)) {
    throw new CommandError("--key-only cannot be combined with --json or --output-key.", "usage");
  }
  if (outputKey === undefined) {
    const created = await create();
    showKey(created, keyOnly, output);
    return created;
  }
  const file = await createFile(outputKey);
  try {
    const created = await create().catch(async (error) => {
      await rm(outputKey, { force: true });
      throw error;
    });
    await writeKey(file, created, outputKey);
    const { key: _, ...rest } = created;
    output.show(ApplicationSchema, rest, (display) =>
      formatDetails(
        [
          ["application", created.name, created.id],
          ["key file", outputKey],
        ],
        display,
      ),
    );
    return created;
  } finally {
    await file.close();
  }
}

function showKey(created: Application, keyOnly: boolean, output: Output): void {
  const { id, name, type, key = "" } = created;
  requireReaderOfKey(created);
  if (keyOnly) {
    process.stdout.write(`${escapeUnprintable(key)}\n`);
    return;
  }
  output.show(ApplicationSchema, created, (display) =>
    [
      formatDetails(
        [
          ["application", name, id],
          ["type", type],
        ],
        display,
      ),
      formatSecret("key", key, display),
    ].join(""),
  );
  output.note("The key is shown only once. Store it safely.");
}

function requireReaderOfKey({ name, id }: Application): void {
  requireReader(
    `The new key of "${name}" is lost. Create another: ${latchkey(`apps rotate ${id}`)}`,
  );
}

async function createFile(path: string): Promise<FileHandle> {
  return open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST"
      ? new CommandError(`${path} already exists. Pass another file with --output-key.`, "conflict")
      : new CommandError(`Cannot write ${path}: ${fileReason(error)}`);
  });
}

/** A key that cannot be written is printed instead, so that it is not lost. */
async function writeKey(file: FileHandle, created: Application, path: string): Promise<void> {
  const { key = "" } = created;
  try {
    await file.writeFile(`${escapeUnprintable(key)}\n`);
    await file.sync();
  } catch (error) {
    requireReaderOfKey(created);
    process.stdout.write(`${escapeUnprintable(key)}\n`);
    throw new CommandError(
      `Cannot write ${path}: ${fileReason(error as Error)}. The key is printed on stdout. Store it safely.`,
    );
  }
}

const keyColumns: readonly Column<ApplicationKey>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "CREATED", text: ({ createdAt }) => formatRelativeTime(createdAt) },
  { title: "EXPIRES", text: ({ expiresAt }) => formatRelativeTime(expiresAt) },
  {
    title: "LAST USED",
    text: ({ lastUsedAt }) => formatRelativeTime(lastUsedAt, "never"),
  },
];

async function listKeys(reference: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const id = await findApplicationId(context, reference);
    const keys = await readPages({ limit: maxPageSize, all: true }, (page) =>
      client.applications.listApplicationKeys({ id, ...page }, call),
    );
    showList(output, ListApplicationKeysResponseSchema, keys, {
      noun: "key",
      format: (rows, display) => formatTable(keyColumns, rows, display),
    });
  });
}

async function revokeKey(
  reference: string,
  keyId: string,
  flags: ClientFlags & ConfirmFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name } = await findApplication(context, reference);
    const warning = (await isOwnApplication(context, id))
      ? " Your own key belongs to this application, and may be this one."
      : "";
    await confirm(
      `The key ${keyId} of "${name}" (${id}) will stop working immediately.${warning}`,
      flags,
    );
    await client.applications.deleteApplicationKey({ id, keyId }, call);
    output.showValue({ id, key_id: keyId }, () => `Key ${keyId} is revoked.\n`);
  });
}

interface RotateFlags extends ClientFlags, NewKeyFlags, ConfirmFlags {
  /** Milliseconds. */
  readonly grace: number;
  /** Whether to revoke the current keys now. */
  readonly noGrace?: boolean;
}

async function rotateKey(reference: string, flags: RotateFlags): Promise<void> {
  const { grace, noGrace = false } = flags;
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, version } = await findApplication(context, reference);
    const isOwn = await isOwnApplication(context, id);
    if (noGrace) {
      const warning = isOwn ? " Your own key is one of them." : "";
      await confirm(
        `The current keys of "${name}" will stop working immediately.${warning}`,
        flags,
      );
    }
    const gracePeriod = noGrace ? {} : { gracePeriod: durationFromMs(grace) };
    // Fails if it changed after the prompt showed it.
    const request = { id, ifMatch: version, ...gracePeriod };
    const { key = "" } = await withNewKey(flags, output, () =>
      client.applications.regenerateApplicationKey(request, call),
    );
    output.note(
      noGrace
        ? "All previous keys are revoked."
        : `The previous key stays valid for ${formatExactDuration(grace)}. To revoke it earlier, use ${latchkey("apps revoke-key")}.`,
    );
    if (isOwn) {
      await replaceOwnKey(key, flags, context);
    }
  });
}

/** Saves the new key to the profile of the caller after a confirmation, or describes how to. */
async function replaceOwnKey(
  key: string,
  { yes, outputKey }: RotateFlags,
  { connection, output }: ClientContext,
): Promise<void> {
  const { profile, keySource } = connection;
  const canPrompt = profile !== undefined && !yes && !output.isJson;
  if (canPrompt && (await promptYesNo(`Save the new key to the profile "${profile}"?`))) {
    const profiles = await readProfiles();
    await saveProfile(profile, { ...getProfile(profiles, profile), key }, profiles);
    output.note(`Saved the new key to the profile "${profile}".`);
  } else if (profile !== undefined) {
    const keyFile = outputKey === undefined ? "" : ` --key-file ${quoteIfNeeded(outputKey)}`;
    output.warn(`The profile "${profile}" still has the previous key. Save the new one:`);
    output.warn(`  ${replaceProfileCommand(profile, connection)}${keyFile}`);
  } else if (keySource !== undefined) {
    output.warn(`The key from ${keySource} is the previous one. Replace it with the new one.`);
  }
}
