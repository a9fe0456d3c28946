/** The same request or answer with other messages. It stays what it is: what it makes on demand is no part of a copy. */
export function withMessage<T extends { readonly message: unknown }>(
  original: T,
  message: T["message"],
): T {
  return Object.create(original, { message: { value: message } });
}
