import { createHash, verify } from "node:crypto";
import type { SigningKeys } from "../../config/secret-scanning.js";
import { parseKey } from "../../contract/key-format.js";
import { invalidRequest } from "../../errors.js";

/** A token that secret scanning found. */
interface LeakedToken {
  readonly token: string;
  /** The name of the pattern that it matches. */
  readonly type: string;
}

/** The headers of GitHub's secret scanning. */
const keyIdHeader = "github-public-key-identifier";
const signatureHeader = "github-public-key-signature";

/** A P-256 signature in DER has at most 72 bytes. */
const signaturePattern = /^[A-Za-z0-9+/]{1,96}={0,2}$/;

/** Whether the body has a signature by one of the keys: ECDSA with SHA-256, in base64. */
export function isSignedBy(
  keys: SigningKeys,
  header: Pick<Headers, "get">,
  body: Uint8Array,
): boolean {
  const key = keys.get(header.get(keyIdHeader) ?? "");
  const signature = header.get(signatureHeader) ?? "";
  return (
    key !== undefined &&
    signaturePattern.test(signature) &&
    verify("sha256", body, key, Buffer.from(signature, "base64"))
  );
}

/**
 * Reads the tokens of a signed report. One unusual item must not protect other leaked keys, so those without a token
 * are ignored, and the JSON is not as strict as in other requests: names may be duplicate, and text invalid UTF-8.
 */
export function readLeakedTokens(body: Uint8Array): LeakedToken[] {
  const report = parseReport(body);
  if (!Array.isArray(report)) {
    throw invalidRequest({ field: "request", message: "must be a JSON array of leaked tokens" });
  }
  return report.flatMap((item: unknown) => {
    const { token, type } = Object(item);
    return typeof token === "string" ? { token, type: typeof type === "string" ? type : "" } : [];
  });
}

function parseReport(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
}

/** GitHub's feedback. A token with an intact checksum is a key or nonce, even if it is not valid any more. */
export function createFeedback(
  tokens: readonly LeakedToken[],
  validKeys: ReadonlySet<string>,
): object[] {
  return tokens.map(({ token, type }) => ({
    token_hash: createHash("sha256").update(token).digest("hex"),
    token_type: type,
    label: validKeys.has(token) || parseKey(token) ? "true_positive" : "false_positive",
  }));
}
