/**
 * Exits with 0 if the service in this container is alive. Uses TLS if the service does. If the
 * service requires client certificates, an accepted connection is enough.
 */
import { get } from "node:http";
import { get as getOverTls } from "node:https";
import { connect } from "node:net";

const timeoutMs = 2_500;
const { HOST, PORT = "8080", TLS_CERT, TLS_CLIENT_CA } = process.env;
const allAddresses = ["", "0.0.0.0", "::"];
const host = allAddresses.includes(HOST ?? "") ? "127.0.0.1" : HOST;
const address = { host, port: Number(PORT || 8080) };

function exit(isAlive) {
  process.exit(isAlive ? 0 : 1);
}

function onResponse({ statusCode }) {
  exit(statusCode === 200);
}

function probe() {
  if (TLS_CLIENT_CA) {
    return connect(address, () => exit(true));
  }
  const request = { ...address, path: "/healthz" };
  // The certificate is for another name than localhost.
  return TLS_CERT
    ? getOverTls({ ...request, rejectUnauthorized: false }, onResponse)
    : get(request, onResponse);
}

probe().on("error", () => exit(false));
setTimeout(exit, timeoutMs, false);
