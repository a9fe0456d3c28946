import { Argument, type Command, Option } from "commander";
import {
  example,
  fileOption,
  header,
  lazily,
  profileArgument,
  profileName,
  serviceUrl,
  timeLimit,
  withJson,
} from "../options.js";

export function addProfileCommands(program: Command): void {
  const profile = program
    .command("profile")
    .description("keep services and their keys under names, in a file for you only");

  const add = profile
    .command("add")
    .description("keep a service and a key, which is asked for, or read from stdin")
    .addArgument(new Argument("<name>", "what to call it").argParser(profileName))
    .addOption(new Option("--url <url>", "where the service is").argParser(serviceUrl))
    .addOption(fileOption("--key-file <file>", "the file with the key, - for stdin"))
    .addOption(
      new Option("--key-header <name>", "the header that carries the key").argParser(header),
    )
    .option("--replace", "replace the one of this name")
    .option("--no-check", "do not ask the service whether the key works")
    .addOption(
      new Option("--timeout <time>", "how long an answer may take")
        .argParser(timeLimit)
        .default(15_000, "15s"),
    )
    .action(lazily(async () => (await import("./actions.js")).addProfile));
  example(withJson(add), "latchkey profile add staging --url https://latchkey.staging.example.com");

  const list = profile
    .command("ls")
    .description("list profiles; a star marks the one in use")
    .action(lazily(async () => (await import("./actions.js")).listProfiles));
  example(withJson(list), "latchkey profile ls");

  const use = profile
    .command("use")
    .description("use a profile where no other is named")
    .addArgument(profileArgument())
    .action(lazily(async () => (await import("./actions.js")).useProfile));
  example(withJson(use), "latchkey profile use staging");

  const remove = profile
    .command("rm")
    .description("forget a profile and its key")
    .addArgument(profileArgument())
    .action(lazily(async () => (await import("./actions.js")).removeProfile));
  example(withJson(remove), "latchkey profile rm staging");
}
