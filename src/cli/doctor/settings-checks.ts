import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import { ConfigError, readSettings, type Settings } from "../../config/settings.js";
import type { TlsSettings } from "../../config/tls.js";
import { isLoopback } from "../connection.js";
import { type Finding, fail, ok, warn } from "./finding.js";

/** Reads the settings as the service would, or tells all that is wrong with them. */
export function checkSettings(): { readonly settings?: Settings; readonly findings: Finding[] } {
  try {
    const settings = readSettings();
    return { settings, findings: [ok("settings", "all of them can be used")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) {
      throw error;
    }
    const findings = error.problems.map((problem) =>
      fail("settings", problem, "Set it so, or unset it. All else is checked once this is mended."),
    );
    return { findings };
  }
}

/** What can be used, but had better be otherwise. */
export function checkChoices({ peppers, grantPolicy, corsOrigins }: Settings): Finding[] {
  const findings = [
    peppers[0] === ""
      ? warn(
          "pepper",
          "there is none: whoever reads the store can tell which of its hashes a key belongs to",
          "Set KEY_PEPPER to a secret, with a comma at its end so that keys from before go on working.",
        )
      : ok("pepper", "new keys are hashed with a secret"),
  ];
  if (grantPolicy === "open") {
    findings.push(
      warn(
        "grants",
        "callers can give what they do not hold",
        "Unset GRANT_POLICY unless that is meant.",
      ),
    );
  }
  if (corsOrigins.includes("*")) {
    findings.push(
      warn("web pages", "all of them may call", "Name yours in CORS_ORIGINS unless that is meant."),
    );
  }
  return findings;
}

const day = 86_400_000;
/** Days before its end at which a certificate should have been renewed. */
const renewBefore = 14;

export async function checkTls({ tls, host, trustedProxies }: Settings): Promise<Finding[]> {
  if (tls) {
    return [checkCertificate(tls.contents.cert, Date.now()), ...(await checkKeyFile(tls))];
  }
  const isHidden = trustedProxies.length > 0 || (host !== undefined && isLoopback(host));
  return [
    isHidden
      ? ok("tls", "off, as behind a proxy or on this machine alone")
      : warn(
          "tls",
          "off: keys can be read on their way",
          "Set TLS_CERT and TLS_KEY, or put a proxy with TLS before it, and name that in TRUSTED_PROXIES.",
        ),
  ];
}

/** Whether a certificate is good now, and for how long. */
export function checkCertificate(pem: Buffer, now: number): Finding {
  const { subject, validFrom, validTo } = new X509Certificate(pem);
  const name = `the certificate of ${subject.replaceAll("\n", ", ") || "nobody"}`;
  const left = Math.floor((Date.parse(validTo) - now) / day);
  const renew = "Renew the files of TLS_CERT and TLS_KEY: they are taken without a restart.";
  if (Date.parse(validFrom) > now) {
    return fail("tls", `${name} is not good before ${validFrom}`, renew);
  }
  if (left < 0) {
    return fail("tls", `${name} has ended on ${validTo}`, renew);
  }
  return left < renewBefore
    ? warn("tls", `${name} ends in ${left} days, on ${validTo}`, renew)
    : ok("tls", `${name} is good for ${left} days`);
}

async function checkKeyFile({ files: { key } }: TlsSettings): Promise<Finding[]> {
  const { mode } = await stat(key);
  return (mode & 0o077) === 0
    ? []
    : [warn("tls", `${key} can be read by others`, `Close it: chmod 600 ${key}`)];
}
