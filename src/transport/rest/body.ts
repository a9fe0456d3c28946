import { RestFormat } from "../../../gen/latchkey/v1/options_pb.js";
import { invalidRequest, unsupportedMediaType } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { decodeUtf8, parseJson } from "../../validation/json.js";
import type { Exchange } from "../http/exchange.js";
import type { Binding } from "./bindings.js";

interface BodyLimits {
  /** The maximum size in bytes. */
  readonly bodyLimit: number;
  /** The maximum nesting depth of JSON. */
  readonly jsonDepth: number;
}

/** Reads the body of a request as a JSON value. A missing body is an empty object. */
type ReadBody = (exchange: Exchange) => MaybePromise<unknown>;

/** The maximum size of a form in bytes. A form has a few short parameters. */
const formLimit = 16 * 1024;

/** Creates a reader of bodies in the format of a binding. */
export function createBodyReader(
  { format, isPatch }: Pick<Binding, "format" | "isPatch">,
  { bodyLimit, jsonDepth }: BodyLimits,
): ReadBody {
  const isForm = format === RestFormat.FORM;
  const limit = isForm ? Math.min(bodyLimit, formLimit) : bodyLimit;
  const types = [
    isForm ? "application/x-www-form-urlencoded" : "application/json",
    ...(isPatch ? ["application/merge-patch+json"] : []),
  ];
  const type = types.join(" or ");
  const pattern = new RegExp(`^(${types.join("|").replaceAll("+", "\\+")})\\s*(;|$)`, "i");

  function assertContentType({ headers }: Exchange): void {
    const { "content-type": given = "", "content-encoding": encoding = "identity" } = headers;
    if (pattern.test(given) && encoding === "identity") {
      return;
    }
    throw format === RestFormat.LENIENT_JSON
      ? invalidRequest({ field: "content-type", message: `must be ${type}, without compression` })
      : unsupportedMediaType(types, { type: given, encoding });
  }

  return (exchange) =>
    mapMaybePromise(exchange.readBody(limit), (body) => {
      if (body.length === 0) {
        return {};
      }
      assertContentType(exchange);
      return isForm ? parseForm(body) : parseJson(body, jsonDepth);
    });
}

/** A percent sign that encodes nothing and stands for itself. */
const barePercent = /%(?![0-9a-f]{2})/gi;

/** Decodes a form. Throws if it is not valid UTF-8, also where it is percent-encoded. */
function decodeForm(body: Buffer): URLSearchParams {
  const text = decodeUtf8(body);
  try {
    decodeURIComponent(text.replace(barePercent, "%25"));
  } catch {
    throw invalidRequest({ field: "request", message: "is not valid UTF-8", code: "malformed" });
  }
  // A question mark at the start would be removed, because it starts a query.
  return new URLSearchParams(`&${text}`);
}

/** Parses a form. Parameters without a value are ignored (RFC 6749, section 3.2). */
function parseForm(body: Buffer): Record<string, string> {
  const names = new Set<string>();
  const parameters: [name: string, value: string][] = [];
  for (const [name, value] of decodeForm(body)) {
    if (names.has(name)) {
      throw invalidRequest({
        field: name,
        message: "is duplicated: send it once",
        code: "duplicate",
      });
    }
    names.add(name);
    if (value !== "") {
      parameters.push([name, value]);
    }
  }
  return Object.fromEntries(parameters);
}
