import { type FileHandle, open, rm } from "node:fs/promises";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { CommandFailure } from "../errors.js";
import type { Output } from "../output.js";
import { detailsText } from "../table.js";

/** Where a new key goes, which is shown once and kept nowhere. */
export interface NewKeyFlags {
  readonly keyOnly?: boolean;
  /** A file to write it to, for its owner only, instead of showing it. */
  readonly outputKey?: string;
}

/**
 * Has a key made, and hands it over. The file for it is there before: a key
 * that could not be written would be lost.
 */
export async function withNewKey(
  { keyOnly = false, outputKey }: NewKeyFlags,
  output: Output,
  make: () => Promise<Application>,
): Promise<void> {
  if (keyOnly && (output.isJson || outputKey !== undefined)) {
    throw new CommandFailure(
      "--key-only shows the key and nothing else: leave out the others.",
      "usage",
    );
  }
  if (outputKey === undefined) {
    show(await make(), keyOnly, output);
    return;
  }
  const file = await createFile(outputKey);
  try {
    const made = await make().catch(async (error) => {
      await rm(outputKey, { force: true });
      throw error;
    });
    await writeKey(file, made.key ?? "", outputKey);
    const { key: _, ...rest } = made;
    output.show(ApplicationSchema, rest, (look) =>
      detailsText(
        [
          ["application", made.id],
          ["name", made.name],
          ["key in", outputKey],
        ],
        look,
      ),
    );
  } finally {
    await file.close();
  }
}

function show(made: Application, keyOnly: boolean, output: Output): void {
  const { id, name, type, key = "" } = made;
  if (keyOnly) {
    process.stdout.write(`${key}\n`);
    return;
  }
  output.show(ApplicationSchema, made, (look) =>
    detailsText(
      [
        ["application", id],
        ["name", name],
        ["type", type],
        ["key", key],
      ],
      look,
    ),
  );
  output.note("The key is shown only now and kept nowhere: store it safely.");
}

async function createFile(path: string): Promise<FileHandle> {
  return open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST"
      ? new CommandFailure(`${path} is there already: name another file for the key.`, "conflict")
      : new CommandFailure(`${path} cannot be written: ${error.message}`);
  });
}

/** A key that cannot be written is better shown than lost. */
async function writeKey(file: FileHandle, key: string, path: string): Promise<void> {
  try {
    await file.writeFile(`${key}\n`);
    await file.sync();
  } catch (error) {
    process.stdout.write(`${key}\n`);
    throw new CommandFailure(
      `${path} cannot be written (${(error as Error).message}): the key is on stdout, store it safely.`,
    );
  }
}
