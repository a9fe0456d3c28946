import { capitalize, splitCamelCase } from "../../common/words.js";

/** `Application updated` for `application.updated`. */
export function kindInWords(kind: string): string {
  return toSentence(kind.replaceAll(/[._]/g, " "));
}

/** `Update application` for `latchkey.v1.ApplicationService/UpdateApplication`. */
export function methodInWords(method: string): string {
  const name = method.split("/").at(-1) ?? method;
  return toSentence(splitCamelCase(name));
}

/** The console calls the regeneration of a key its rotation. */
function toSentence(words: string): string {
  return capitalize(words.replace("regenerate", "rotate"));
}
