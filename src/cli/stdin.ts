import { CommandFailure } from "./failure.js";

let isRead = false;

/** All of stdin, up to a limit. It is read once, for whatever was to come from it. */
export async function readStdin(mostBytes = Number.POSITIVE_INFINITY): Promise<string> {
  if (isRead) {
    throw new CommandFailure("stdin can give one thing only: read the others from files.", "usage");
  }
  isRead = true;
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > mostBytes) {
      break;
    }
  }
  return text;
}
