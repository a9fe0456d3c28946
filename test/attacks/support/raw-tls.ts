import { connect } from "node:tls";
import { openRaw, type RawConnection } from "../../support/http/raw-connection.js";

/** Where a service that is tested with TLS has its certificate from, which it has signed itself. */
export const tlsEnvironment = {
  TLS_CERT: "test/fixtures/localhost.crt",
  TLS_KEY: "test/fixtures/localhost.key",
};

/** Opens a connection with TLS, on which whatever is written is written. */
export function openRawTls(port: number, protocol: "http/1.1" | "h2" = "http/1.1"): RawConnection {
  const { socket: bare, ended } = openRaw(port);
  const socket = connect({ socket: bare, rejectUnauthorized: false, ALPNProtocols: [protocol] });
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
