/** Words of questions, which most parts of the documentation contain. */
export const stopWords: ReadonlySet<string> = new Set(
  "a an and are at be can do does for from how i in is it my of on or should the this to use was we what when where which why will with you your".split(
    " ",
  ),
);

/** Usual words for what the documentation calls otherwise. */
export const synonyms: Readonly<Record<string, string>> = {
  allowlist: "networks",
  bulk: "batch",
  customer: "tenant",
  eaddrinuse: "port",
  failover: "replica set",
  golang: "go",
  "high availability": "replica set",
  "ip allowlist": "networks",
  "ip whitelist": "networks",
  k8s: "kubernetes",
  "log out": "revoke session",
  logout: "revoke session",
  limit: "limits",
  logging: "logs",
  lost: "lost key",
  monitoring: "metrics",
  mtls: "client certificate",
  "mutual tls": "client certificate",
  "multi tenancy": "tenant",
  "multi tenant": "tenant",
  multitenant: "tenant",
  pagination: "lists",
  paging: "lists",
  rbac: "permissions",
  sdk: "client",
  "sign out": "revoke session",
  throttle: "rate limits",
  throttling: "rate limits",
  unused: "last used",
  webhook: "watch events",
  webhooks: "watch events",
  whitelist: "networks",
  who: "actor",
  "zero downtime": "without downtime",
};
