import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import { ConfigError, readSettings, type Settings } from "../../config/settings.js";
import type { TlsSettings } from "../../config/tls.js";
import { isLoopback } from "../../lib/networks.js";
import { day } from "../../lib/time-units.js";
import { type Finding, fail, ok, warn } from "./report.js";

/** Reads the settings the same way as the service. Reports every invalid one. */
export function checkSettings(): { readonly settings?: Settings; readonly findings: Finding[] } {
  try {
    const settings = readSettings();
    return { settings, findings: [ok("settings", "all valid")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) {
      throw error;
    }
    const findings = error.problems.map((problem) =>
      fail(
        "settings",
        problem,
        "Fix or remove it. The other checks run after all settings are valid.",
      ),
    );
    return { findings };
  }
}

/** Settings that are valid but risky. */
export function checkRisks({ peppers, grantPolicy, corsOrigins }: Settings): Finding[] {
  const findings = [
    peppers[0] === ""
      ? warn(
          "pepper",
          "not set: anyone who can write to the store can plant a key",
          "Set KEY_PEPPER to a random secret. Put a comma after it, which keeps existing keys valid.",
        )
      : ok("pepper", "new keys are hashed with a secret"),
  ];
  if (grantPolicy === "open") {
    findings.push(
      warn(
        "grants",
        "callers can grant permissions that they do not hold",
        "Remove GRANT_POLICY unless this is intended.",
      ),
    );
  }
  if (corsOrigins.includes("*")) {
    findings.push(
      warn(
        "web pages",
        "every website may call the service",
        "List your origins in CORS_ORIGINS unless this is intended.",
      ),
    );
  }
  return findings;
}

/** Days before expiry from which a certificate is reported. */
const renewalPeriod = 14;

export async function checkTls({ tls, host, trustedProxies }: Settings): Promise<Finding[]> {
  if (tls) {
    return [checkCertificate(tls.contents.cert, Date.now()), ...(await checkKeyFile(tls))];
  }
  const isProtected = trustedProxies.length > 0 || (host !== undefined && isLoopback(host));
  return [
    isProtected
      ? ok("tls", "off; the service is behind a proxy or on loopback only")
      : warn(
          "tls",
          "off: keys are sent unencrypted",
          "Set TLS_CERT and TLS_KEY, or use a TLS proxy and list it in TRUSTED_PROXIES.",
        ),
  ];
}

export function checkCertificate(pem: Buffer, now: number): Finding {
  const { subject, validFrom, validTo } = new X509Certificate(pem);
  const name = `certificate ${subject.replaceAll("\n", ", ") || "without a subject"}`;
  const daysLeft = Math.floor((Date.parse(validTo) - now) / day);
  const renew = "Renew the files of TLS_CERT and TLS_KEY. They are reloaded without a restart.";
  if (Date.parse(validFrom) > now) {
    return fail("tls", `${name} is not valid before ${validFrom}`, renew);
  }
  if (daysLeft < 0) {
    return fail("tls", `${name} expired on ${validTo}`, renew);
  }
  return daysLeft < renewalPeriod
    ? warn("tls", `${name} expires in ${daysLeft} days, on ${validTo}`, renew)
    : ok("tls", `${name} is valid for ${daysLeft} days`);
}

async function checkKeyFile({ files: { key } }: TlsSettings): Promise<Finding[]> {
  const { mode } = await stat(key);
  return (mode & 0o077) === 0
    ? []
    : [warn("tls", `${key} is readable by other users`, `Run: chmod 600 ${key}`)];
}
