/** `Application updated` for `application.updated`. */
export function kindInWords(kind: string): string {
  return toSentence(kind.replaceAll(/[._]/g, " "));
}

/** `Update application` for `latchkey.v1.ApplicationService/UpdateApplication`. */
export function methodInWords(method: string): string {
  const name = method.split("/").at(-1) ?? method;
  const words = name.match(/[A-Z][a-z]*/g) ?? [name];
  return toSentence(words.map((word) => (word === "I" ? word : word.toLowerCase())).join(" "));
}

/** The console calls the regeneration of a key its rotation. */
function toSentence(words: string): string {
  const text = words.replace("regenerate", "rotate");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
