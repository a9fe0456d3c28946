import { readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, expect, it } from "@jest/globals";
import { ConfigError, type Environment, readSettings } from "../../src/config/settings.js";
import { createKeyFile, createSecretScanner } from "../services/keys/secret-scanner.js";

function getProblems(environment: Environment): readonly string[] {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.problems;
    }
    throw error;
  }
  return [];
}

describe("docs/reference/settings.md", () => {
  const page = readFileSync("docs/reference/settings.md", "utf8");
  const defaults = [...page.matchAll(/^\| `([A-Z0-9_]+)` \| `([^`]+)` \|/gm)].map(
    ([, name = "", value = ""]) => [name, value] as const,
  );
  /** A default is observable only where the setting has an effect. */
  const contexts: readonly Environment[] = [
    { WORKERS: "1", METRICS_PORT: "9464" },
    { WORKERS: "1", METRICS_PORT: "9464", MONGODB_URI: "mongodb://db" },
  ];

  it("states most defaults as values", () => {
    expect(defaults.length).toBeGreaterThan(35);
  });

  it.each(defaults)("states the default of %s: %s", (name, value) => {
    for (const context of contexts) {
      expect(readSettings({ ...context, [name]: value })).toEqual(readSettings(context));
    }
  });
});

describe("readSettings", () => {
  it("has a default for every setting", () => {
    expect(readSettings({})).toMatchObject({
      port: 8080,
      workers: availableParallelism(),
      store: { kind: "embedded", dataDir: "./data" },
      keyHeader: "SVC-API-KEY",
      sessionTtl: 180_000,
      sessionQuota: 10_000,
      unauthorizedSessionQuota: 10_000,
      requestTimeout: 9_000,
      importedKeys: false,
      grantPolicy: "held",
      peppers: [""],
      corsOrigins: [],
      trustedProxies: [],
    });
  });

  it("treats an empty variable as unset", () => {
    expect(readSettings({ PORT: "", MONGODB_URI: "" })).toEqual(readSettings({}));
  });

  it("selects MongoDB if MONGODB_URI is set", () => {
    expect(readSettings({ MONGODB_URI: "mongodb://db", MONGODB_DATABASE: "keys" }).store).toEqual({
      kind: "mongodb",
      uri: "mongodb://db",
      database: "keys",
      reads: "linearizable",
    });
  });

  it("reads MONGODB_READS", () => {
    const environment = { MONGODB_URI: "mongodb://db", MONGODB_READS: "majority" };
    expect(readSettings(environment).store).toMatchObject({ reads: "majority" });
    expect(getProblems({ MONGODB_READS: "local" })).toEqual([
      "MONGODB_READS must be linearizable or majority",
    ]);
  });

  it.each([
    ["180", 180_000],
    ["500ms", 500],
    ["3m", 180_000],
    ["2h", 7_200_000],
    ["30d", 2_592_000_000],
  ])("reads the duration %s", (text, milliseconds) => {
    expect(readSettings({ SESSION_TTL: text }).sessionTtl).toBe(milliseconds);
  });

  it.each([
    ["4096", 4096],
    ["64kb", 65_536],
    ["2MB", 2_097_152],
  ])("reads the size %s", (text, bytes) => {
    expect(readSettings({ BODY_LIMIT: text }).bodyLimit).toBe(bytes);
  });

  it("reads peppers newest first, with an empty last one for no pepper", () => {
    const [first, second] = ["a".repeat(16), "b".repeat(16)];
    expect(readSettings({ KEY_PEPPER: `${first},${second},` }).peppers).toEqual([
      first,
      second,
      "",
    ]);
  });

  it("returns a frozen object", () => {
    expect(Object.isFrozen(readSettings({}))).toBe(true);
  });

  it("reports all problems at once, each with the name of its setting", () => {
    const problems = getProblems({
      PORT: "http",
      WORKERS: "many",
      SESSION_TTL: "soon",
      SESSION_QUOTA: "0",
      GRANT_POLICY: "loose",
      CORS_ORIGINS: "https://a.example/path",
      KEY_HEADER: "bad header",
      TLS_CERT: "/nowhere/cert.pem",
      TLS_KEY: "/nowhere/key.pem",
      MONGODB_URI: "localhost:27017",
      BODY_LIMIT: "1tb",
      LOG_LEVEL: "loud",
      KEY_PEPPER: "short",
      MONGODB_DATABASE: "a/b",
      TRUSTED_PROXIES: "everybody",
      HEADER_LIMIT: "1mb",
      HEADER_COUNT_LIMIT: "1",
      URL_LIMIT: "0",
      JSON_DEPTH_LIMIT: "deep",
      LIST_LIMIT: "1",
      HEADER_TIMEOUT: "0",
      BODY_TIMEOUT: "2d",
      IDLE_TIMEOUT: "never",
      CONNECTION_LIMIT: "-1",
      ADDRESS_CONNECTION_LIMIT: "0",
      HTTP2_STREAM_LIMIT: "251",
      CALL_LIMIT: "1.5",
      CALLER_STREAM_LIMIT: "all",
    });
    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual([
      "ADDRESS_CONNECTION_LIMIT",
      "BODY_LIMIT",
      "BODY_TIMEOUT",
      "CALLER_STREAM_LIMIT",
      "CALL_LIMIT",
      "CONNECTION_LIMIT",
      "CORS_ORIGINS",
      "GRANT_POLICY",
      "HEADER_COUNT_LIMIT",
      "HEADER_LIMIT",
      "HEADER_TIMEOUT",
      "HTTP2_STREAM_LIMIT",
      "IDLE_TIMEOUT",
      "JSON_DEPTH_LIMIT",
      "KEY_HEADER",
      "KEY_PEPPER",
      "LIST_LIMIT",
      "LOG_LEVEL",
      "MONGODB_DATABASE",
      "MONGODB_URI",
      "PORT",
      "SESSION_QUOTA",
      "SESSION_TTL",
      "TLS_CERT",
      "TLS_KEY",
      "TRUSTED_PROXIES",
      "URL_LIMIT",
      "WORKERS",
    ]);
  });

  it("reads the resource limits", () => {
    const { limits } = readSettings({
      HEADER_LIMIT: "32kb",
      HEADER_COUNT_LIMIT: "50",
      URL_LIMIT: "4kb",
      JSON_DEPTH_LIMIT: "16",
      HEADER_TIMEOUT: "5s",
      BODY_TIMEOUT: "1m",
      IDLE_TIMEOUT: "2m",
      CONNECTION_LIMIT: "500",
      ADDRESS_CONNECTION_LIMIT: "50",
      HTTP2_STREAM_LIMIT: "250",
      CALL_LIMIT: "100",
      CALLER_STREAM_LIMIT: "10",
      LIST_LIMIT: "200",
    });
    expect(limits).toEqual({
      headerSize: 32_768,
      headerCount: 50,
      urlSize: 4_096,
      jsonDepth: 16,
      bodyBudget: 33_554_432,
      responseBudget: 67_108_864,
      headerTimeout: 5_000,
      bodyTimeout: 60_000,
      idleTimeout: 120_000,
      connections: 500,
      connectionsPerAddress: 50,
      http2Streams: 250,
      calls: 100,
      streams: 10,
      listItems: 200,
    });
  });

  it("refuses a BODY_BUDGET below BODY_LIMIT", () => {
    expect(readSettings({ BODY_BUDGET: "256mb" }).limits.bodyBudget).toBe(268_435_456);
    expect(getProblems({ BODY_LIMIT: "2mb", BODY_BUDGET: "1mb" })).toEqual([
      "BODY_BUDGET must be at least as large as BODY_LIMIT",
    ]);
  });

  it("refuses a BODY_TIMEOUT below HEADER_TIMEOUT", () => {
    expect(getProblems({ HEADER_TIMEOUT: "1m", BODY_TIMEOUT: "30s" })).toEqual([
      "BODY_TIMEOUT must be at least as long as HEADER_TIMEOUT",
    ]);
  });

  it.each(["0", "-1", "1.5", "129", "1e2", "all"])("refuses WORKERS=%s", (WORKERS) => {
    expect(getProblems({ WORKERS })).toEqual([
      "WORKERS must be a number of processes from 1 to 128, for example 4",
    ]);
  });

  it("describes the unit, the range and a valid example of each number", () => {
    expect(getProblems({ HTTP2_STREAM_LIMIT: "251" })).toEqual([
      "HTTP2_STREAM_LIMIT must be a number of concurrent calls from 1 to 250, for example 100",
    ]);
    const problems = getProblems({
      HEADER_COUNT_LIMIT: "1",
      JSON_DEPTH_LIMIT: "1",
      LIST_LIMIT: "1",
      CONNECTION_LIMIT: "0",
      ADDRESS_CONNECTION_LIMIT: "0",
      CALL_LIMIT: "0",
      CALLER_STREAM_LIMIT: "0",
    });
    expect(problems).toHaveLength(7);
    for (const problem of problems) {
      const [, name = "", example = ""] = /^(\w+) .* for example (\d+)$/.exec(problem) ?? [];
      expect(getProblems({ [name]: example })).toEqual([]);
    }
  });

  it("reads trusted proxies as networks or addresses", () => {
    const { trustedProxies } = readSettings({ TRUSTED_PROXIES: "10.0.0.0/8, ::1,::ffff:1.2.3.4" });
    expect(trustedProxies).toEqual([
      { start: [10, 0, 0, 0], prefix: 8 },
      { start: [...Array(15).fill(0), 1], prefix: 128 },
      { start: [1, 2, 3, 4], prefix: 32 },
    ]);
  });

  it.each([
    ["10.0.0.0/33", '"10.0.0.0/33" must have a prefix from /0 to /32'],
    [
      "::1,10.1.0.0/8",
      '"10.1.0.0/8" has bits set after its prefix: use 10.0.0.0/8 for the network',
    ],
    ["loopback", '"loopback" must be a network such as 203.0.113.0/24'],
    ["::1,", '"" must be a network such as 203.0.113.0/24'],
    ["*", '"*" must be a network such as 203.0.113.0/24'],
  ])("refuses TRUSTED_PROXIES=%s", (TRUSTED_PROXIES, why) => {
    const start = "TRUSTED_PROXIES must be a comma-separated list of networks or addresses";
    expect(getProblems({ TRUSTED_PROXIES })).toEqual([expect.stringContaining(`${start}: ${why}`)]);
  });

  it.each([
    ["100/s", { count: 100, interval: 1_000, burst: 200 }],
    ["90/m", { count: 90, interval: 60_000, burst: 3 }],
    ["1/h", { count: 1, interval: 3_600_000, burst: 1 }],
    ["100/s:500", { count: 100, interval: 1_000, burst: 500 }],
    ["off", undefined],
  ])("reads the rate %s", (text, rate) => {
    const { rateLimits } = readSettings({
      RATE_LIMIT_PUBLIC: text,
      RATE_LIMIT_PRIVATE: text,
      RATE_LIMIT_MANAGEMENT: text,
      RATE_LIMIT_FAILURES: text,
      RATE_LIMIT_SESSIONS: text,
    });
    const all = {
      ...{ public: rate, private: rate, management: rate },
      ...{ failures: rate, create_session: rate },
    };
    expect(rateLimits).toEqual({ ...all, shared: false });
  });

  it.each(["100", "0/s", "100/d", "1.5/s", "100/s:0", "100/s:", "none", "-1/s", "1/s:1e9"])(
    "refuses the rate %s",
    (RATE_LIMIT_FAILURES) => {
      expect(getProblems({ RATE_LIMIT_FAILURES })).toEqual([
        "RATE_LIMIT_FAILURES must be off or a rate, for example 100/s, 100/m, 100/h, or 100/s:500 for bursts of 500",
      ]);
    },
  );

  it.each([
    [1, 1_000, 200],
    [3, 1_000, 200],
    [6, 2_000, 100],
    [120, 40_000, 5],
  ])(
    "divides the limit of invalid keys per address among %i processes",
    (workers, interval, burst) => {
      const { rateLimits } = readSettings({ WORKERS: String(workers) });
      expect(rateLimits.failures).toEqual({ count: 10, interval, burst });
    },
  );

  it("allows shared rate limits only with MongoDB", () => {
    const RATE_LIMIT_SCOPE = "shared";
    const { rateLimits } = readSettings({ RATE_LIMIT_SCOPE, MONGODB_URI: "mongodb://db" });
    expect(rateLimits.shared).toBe(true);
    expect(getProblems({ RATE_LIMIT_SCOPE })).toEqual([
      "RATE_LIMIT_SCOPE=shared needs MongoDB: set MONGODB_URI, or use RATE_LIMIT_SCOPE=process",
    ]);
    expect(getProblems({ RATE_LIMIT_SCOPE: "both" })).toEqual([
      "RATE_LIMIT_SCOPE must be process or shared",
    ]);
  });

  it("never includes a secret in a problem", () => {
    expect(getProblems({ KEY_PEPPER: "hunter2" }).join()).not.toContain("hunter2");
    expect(getProblems({ MONGODB_URI: "http://u:hunter2@db" }).join()).not.toContain("hunter2");
  });

  it("refuses files that are not a certificate and key", () => {
    const problems = getProblems({ TLS_CERT: "package.json", TLS_KEY: "package.json" });
    expect(problems).toEqual([
      "TLS_CERT and TLS_KEY must be PEM files with a certificate and its private key",
    ]);
  });

  describe("SECRET_SCANNING_KEYS", () => {
    const scanner = createSecretScanner();
    const getProblem = (content: unknown) => {
      const { path, folder, replace } = createKeyFile();
      replace(typeof content === "string" ? content : JSON.stringify(content));
      const [problem] = getProblems({ SECRET_SCANNING_KEYS: path });
      rmSync(folder, { recursive: true });
      return problem;
    };

    it("accepts public keys as GitHub serves them", () => {
      const { path, folder } = createKeyFile(scanner, createSecretScanner());
      const { secretScanning } = readSettings({ SECRET_SCANNING_KEYS: path });
      rmSync(folder, { recursive: true });
      expect(secretScanning?.path).toBe(path);
    });

    it("accepts keys that are not current, because reports signed by them may still arrive", () => {
      const replaced = { ...createSecretScanner().publicKey, is_current: false };
      expect(getProblem({ public_keys: [scanner.publicKey, replaced] })).toBeUndefined();
    });

    it.each([
      ["", `must be a JSON file with a list "public_keys", as GitHub serves it`],
      ["[]", `must be a JSON file with a list "public_keys", as GitHub serves it`],
      [null, `must be a JSON file with a list "public_keys", as GitHub serves it`],
      [{ public_keys: [] }, `must be a JSON file with a list "public_keys", as GitHub serves it`],
      [{ public_keys: [null] }, "has no key_identifier or key in public_keys[0]"],
      [
        { public_keys: [scanner.publicKey, { key_identifier: "a" }] },
        "has no key_identifier or key in public_keys[1]",
      ],
      [
        { public_keys: [{ key_identifier: "a", key: "b" }] },
        "has no PEM public key of the curve P-256 in public_keys[0].key",
      ],
      [
        { public_keys: [createSecretScanner("P-384").publicKey] },
        "has no PEM public key of the curve P-256 in public_keys[0].key",
      ],
      [
        {
          public_keys: [
            scanner.publicKey,
            { ...createSecretScanner().publicKey, key_identifier: scanner.id },
          ],
        },
        "has the key_identifier of another key in public_keys[1]",
      ],
    ])("refuses a file with %j", (content, problem) => {
      expect(getProblem(content)).toBe(`SECRET_SCANNING_KEYS ${problem}`);
    });

    it("refuses a file that cannot be read", () => {
      expect(getProblems({ SECRET_SCANNING_KEYS: "/nowhere" })).toEqual([
        "SECRET_SCANNING_KEYS must be the path of a readable file; cannot read /nowhere",
      ]);
    });
  });

  it.each(["REQUEST_TIMEOUT", "SHUTDOWN_GRACE"])(
    "refuses a %s above the maximum of a timer",
    (name) => {
      expect(getProblems({ [name]: "600h" })).toEqual([
        `${name} must be a duration of at most 24h, for example 500ms, 30s or 5m`,
      ]);
    },
  );

  it.each([
    "connection",
    "Transfer-Encoding",
    "grpc-timeout",
    "x-forwarded-for",
    "x-request-id",
    "traceparent",
    "tracestate",
    "baggage",
    "Authorization",
    "SVC-GUARD-KEY",
    "X-Original-URI",
    "X-Latchkey-Tenant-Id",
  ])("refuses the reserved header %s for keys", (KEY_HEADER) => {
    expect(getProblems({ KEY_HEADER })).toHaveLength(1);
  });

  it("reads where metrics are served: the service port, a loopback port, or nowhere", () => {
    const readMetrics = (environment: Environment) => readSettings(environment).metrics;
    expect(readMetrics({})).toMatchObject({ port: undefined });
    expect(readMetrics({ METRICS_PORT: "9464" })).toEqual({ port: 9464, host: "127.0.0.1" });
    expect(readMetrics({ METRICS_PORT: "9464", METRICS_HOST: "::" })?.host).toBe("::");
    expect(readMetrics({ METRICS: "off", METRICS_PORT: "9464" })).toBeUndefined();
    expect(getProblems({ METRICS: "no" })).toEqual(["METRICS must be on or off"]);
    expect(getProblems({ METRICS_PORT: "metrics" })).toEqual([
      "METRICS_PORT must be a port from 0 to 65535, for example 8080",
    ]);
    expect(getProblems({ METRICS_HOST: "::" })).toEqual([
      "METRICS_HOST needs METRICS_PORT: set both, or unset METRICS_HOST",
    ]);
  });

  it("retains events for 30 days by default and ten years at most", () => {
    const day = 24 * 3_600_000;
    expect(readSettings({}).eventRetention).toBe(30 * day);
    expect(readSettings({ EVENT_RETENTION: "3650d" }).eventRetention).toBe(3_650 * day);
    for (const EVENT_RETENTION of ["3651d", "0d", "1w", "-1d"]) {
      expect(getProblems({ EVENT_RETENTION })).toEqual([
        "EVENT_RETENTION must be a duration of at most 3650d, for example 3m, 1h or 30d",
      ]);
    }
  });

  it("requires TLS_CERT and TLS_KEY together", () => {
    expect(getProblems({ TLS_CERT: "package.json" })).toEqual([
      "TLS_CERT and TLS_KEY must be set together: set both or neither",
    ]);
  });

  it("refuses a key that does not belong to the certificate", () => {
    const TLS_CERT = "test/fixtures/localhost.crt";
    const TLS_KEY = "test/fixtures/localhost-renewed.key";
    expect(getProblems({ TLS_CERT, TLS_KEY })).toEqual([
      "TLS_CERT and TLS_KEY must be PEM files with a certificate and its private key",
    ]);
  });

  it("refuses a TLS_CLIENT_CA that is not a CA certificate, or without TLS", () => {
    const tls = {
      TLS_CERT: "test/fixtures/localhost.crt",
      TLS_KEY: "test/fixtures/localhost.key",
    };
    for (const TLS_CLIENT_CA of ["package.json", "test/fixtures/client.crt"]) {
      expect(getProblems({ ...tls, TLS_CLIENT_CA })).toEqual([
        "TLS_CLIENT_CA must be a PEM file with the certificate of a certificate authority",
      ]);
    }
    expect(getProblems({ TLS_CLIENT_CA: "test/fixtures/client-ca.crt" })).toEqual([
      expect.stringContaining("TLS_CLIENT_CA needs TLS_CERT and TLS_KEY"),
    ]);
  });

  it("refuses a SESSION_MAX_TTL below SESSION_TTL", () => {
    expect(getProblems({ SESSION_TTL: "1h", SESSION_MAX_TTL: "1m" })).toHaveLength(1);
  });
});

describe("PUBLIC_URL", () => {
  it.each([
    ["https://keys.example.com", "https://keys.example.com"],
    ["https://keys.example.com/", "https://keys.example.com"],
    ["HTTPS://Keys.Example.com:443/api//", "https://keys.example.com/api"],
    ["http://localhost:8080", "http://localhost:8080"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["http://[::1]:8080", "http://[::1]:8080"],
  ])("%s is read as %s", (text, publicUrl) => {
    expect(readSettings({ PUBLIC_URL: text }).publicUrl).toBe(publicUrl);
  });

  it.each([
    "keys.example.com",
    "http://keys.example.com",
    "http://127.0.0.1.example.com",
    "ftp://localhost",
    "https://user@keys.example.com",
    "https://keys.example.com?tenant=1",
    "https://keys.example.com#top",
    "https://",
    "https://keys example",
  ])("refuses %s", (text) => {
    expect(() => readSettings({ PUBLIC_URL: text })).toThrow("PUBLIC_URL must be an https URL");
  });
});
