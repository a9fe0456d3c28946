import { reportError } from "./errors.js";
import { createProgram } from "./program.js";
import { handleOutputErrors } from "./stdio.js";

handleOutputErrors();

const program = createProgram();
if (!program.commands.some((command) => command.name() === process.argv[2])) {
  const { addClientCommands } = await import("./commands.js");
  addClientCommands(program);
}

program.parseAsync().catch(reportError);
