#!/usr/bin/env node
import { Command, InvalidArgumentError } from "commander";
import { type Bootstrapped, bootstrap } from "./bootstrap.js";
import { ConfigError, readSettings } from "./config.js";
import { Problem } from "./errors.js";
import { isId } from "./ids.js";
import { createKeyring } from "./keys.js";
import { openStore } from "./open-store.js";
import { serve } from "./serve.js";

interface BootstrapFlags {
  readonly tenant?: string;
  readonly name?: string;
  readonly json?: boolean;
}

const program = new Command("latchkey").description(
  "Credential and session service. Settings come from environment variables: see docs/operations.md.",
);

program
  .command("serve")
  .description("run the service")
  .action(() => serve(readSettings()));

program
  .command("bootstrap")
  .description("make a tenant and its first management application, and show its key once")
  .option("--tenant <uuid>", "the tenant to make it in (default: a new one)", tenant)
  .option("--name <name>", "what to call the application")
  .option("--json", "print one line of JSON")
  .addHelpText("after", "\nExample:\n  latchkey bootstrap --name 'Platform team' --json")
  .action(async (flags: BootstrapFlags) => {
    const settings = readSettings();
    const store = await openStore(settings.store);
    try {
      const keyring = createKeyring(settings.peppers);
      const made = await bootstrap({ store, keyring, tenantId: flags.tenant, name: flags.name });
      process.stdout.write(flags.json ? asJson(made) : asText(made));
    } finally {
      await store.close();
    }
  });

function asJson({ tenantId, applicationId, key }: Bootstrapped): string {
  return `${JSON.stringify({ tenant_id: tenantId, application_id: applicationId, key })}\n`;
}

function asText({ tenantId, applicationId, key }: Bootstrapped): string {
  return `tenant       ${tenantId}
application  ${applicationId}
key          ${key}

The key is shown only now and kept nowhere: store it safely.
`;
}

function tenant(text: string): string {
  if (!isId(text)) {
    throw new InvalidArgumentError("It must be a UUID.");
  }
  return text;
}

/** What went wrong, a line for each thing. */
function problemsIn(error: Error): readonly string[] {
  if (error instanceof ConfigError) {
    return error.problems;
  }
  return [error instanceof Problem ? error.rawMessage : error.message];
}

program.parseAsync().catch((error: Error) => {
  for (const problem of problemsIn(error)) {
    process.stderr.write(`latchkey: ${problem}\n`);
  }
  process.exitCode = 1;
});
