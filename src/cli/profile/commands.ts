import { Argument, type Command, Option } from "commander";
import {
  addExample,
  fileOption,
  header,
  lazy,
  profileArgument,
  profileName,
  serviceUrl,
  timeout,
  withJson,
} from "../options.js";

export function addProfileCommands(program: Command): void {
  const profile = program.command("profile").description("manage saved service URLs and keys");

  const add = profile
    .command("add")
    .description("save a service URL and a key; the key comes from a prompt or stdin")
    .addArgument(new Argument("<name>", "name of the profile").argParser(profileName))
    .addOption(
      new Option("--url <url>", "URL of the service (default: http://localhost:8080)").argParser(
        serviceUrl,
      ),
    )
    .addOption(fileOption("--key-file <file>", "file with the key, - for stdin"))
    .addOption(new Option("--key-header <name>", "header that carries the key").argParser(header))
    .option("--replace", "overwrite an existing profile")
    .option("--no-check", "do not verify the key")
    .addOption(
      new Option("--timeout <time>", "timeout of the verification, for example 30s")
        .argParser(timeout)
        .default(15_000, "15s"),
    )
    .action(lazy(async () => (await import("./actions.js")).addProfile));
  addExample(
    withJson(add),
    "latchkey profile add staging --url https://latchkey.staging.example.com",
  );

  const list = profile
    .command("ls")
    .description("list profiles; * marks the current one")
    .action(lazy(async () => (await import("./actions.js")).listProfiles));
  addExample(withJson(list), "latchkey profile ls");

  const use = profile
    .command("use")
    .description("make a profile the current one")
    .addArgument(profileArgument())
    .action(lazy(async () => (await import("./actions.js")).useProfile));
  addExample(withJson(use), "latchkey profile use staging");

  const remove = profile
    .command("rm")
    .description("delete a profile and its key")
    .addArgument(profileArgument())
    .action(lazy(async () => (await import("./actions.js")).removeProfile));
  addExample(withJson(remove), "latchkey profile rm staging");
}
