/** The headers of a request, by their names in lower case. */
interface RequestHeaders {
  get(name: string): string | null | undefined;
}

/** Where a client may put its key. */
export interface KeyPlaces {
  /** The name of the key header in lower case. */
  readonly keyHeader: string;
  /** Whether `Authorization: Bearer` may carry the key. */
  readonly bearer: boolean;
  /** Whether the password of `Authorization: Basic` may be the key. The user name is ignored. */
  readonly basic?: boolean;
}

/** The error for two different keys in one request. */
export const differentKeys = "carries another key than the key header: send only one of them";

/**
 * Returns the key of a request, the empty string if there is none, or
 * `undefined` if its headers carry two different keys. Another credential in
 * `Authorization`, such as a token for the upstream, does not count beside the
 * key header.
 */
export function readPresentedKey(
  headers: RequestHeaders,
  { keyHeader, bearer, basic = false }: KeyPlaces,
): string | undefined {
  const key = headers.get(keyHeader) ?? "";
  const authorization = bearer || basic ? headers.get("authorization") : undefined;
  if (!authorization) {
    return key;
  }
  const other =
    (bearer ? readBearer(authorization) : "") || (basic ? readPassword(authorization) : "");
  if (key === "") {
    return other;
  }
  return other === key || !other.startsWith("lk_") ? key : undefined;
}

function readBearer(authorization: string): string {
  return /^Bearer +([!-~]+) *$/i.exec(authorization)?.[1] ?? "";
}

function readPassword(authorization: string): string {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1];
  if (encoded === undefined) {
    return "";
  }
  try {
    return /^[^:]*:(.*)$/s.exec(atob(encoded))?.[1] ?? "";
  } catch {
    return "";
  }
}
