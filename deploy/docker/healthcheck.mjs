/**
 * Whether the service in this container lives: ends with 0 where it does.
 * It asks the service as it is set up, with TLS or without. One that asks for
 * certificates of its clients is taken to live where it takes connections.
 */
import { get } from "node:http";
import { get as getByTls } from "node:https";
import { connect } from "node:net";

const patience = 2_500;
const { HOST, PORT = "8080", TLS_CERT, TLS_CLIENT_CA } = process.env;
const everywhere = ["", "0.0.0.0", "::"];
const host = everywhere.includes(HOST ?? "") ? "127.0.0.1" : HOST;
const place = { host, port: Number(PORT || 8080) };

function end(isAlive) {
  process.exit(isAlive ? 0 : 1);
}

function isGood({ statusCode }) {
  end(statusCode === 200);
}

function ask() {
  if (TLS_CLIENT_CA) {
    return connect(place, () => end(true));
  }
  const request = { ...place, path: "/healthz" };
  // It is this container that is asked: its certificate is made for another name.
  return TLS_CERT
    ? getByTls({ ...request, rejectUnauthorized: false }, isGood)
    : get(request, isGood);
}

ask().on("error", () => end(false));
setTimeout(end, patience, false);
