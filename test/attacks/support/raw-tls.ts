import { connect } from "node:tls";
import { openRaw, type RawConnection } from "../../support/http/raw-connection.js";

/** Settings for TLS with a self-signed certificate. */
export const tlsEnvironment = {
  TLS_CERT: "test/fixtures/localhost.crt",
  TLS_KEY: "test/fixtures/localhost.key",
};

/** Opens a TLS connection for arbitrary bytes. */
export function openRawTls(port: number, protocol: "http/1.1" | "h2" = "http/1.1"): RawConnection {
  const { socket: tcpSocket, ended } = openRaw(port);
  const socket = connect({
    socket: tcpSocket,
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
  });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  return {
    socket,
    received: () => Buffer.concat(chunks),
    ended,
    write: (bytes) => void socket.write(bytes),
  };
}
