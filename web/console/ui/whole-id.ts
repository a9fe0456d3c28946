const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text is an id. What is none may be a key, and must not come into the address of a page. */
export function isWholeId(text: string): boolean {
  return wholeId.test(text);
}
