import { expect, it } from "@jest/globals";
import { explainListenError } from "../../src/lib/listen-error.js";

it("writes an IPv6 address in brackets before the port", () => {
  const error = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
  const names = { host: "HOST", port: "PORT" };
  expect(explainListenError(error, { host: "::1", port: 8080, names }).message).toBe(
    "[::1]:8080 is already in use: stop the other program or set PORT to another port",
  );
  expect(explainListenError(error, { host: undefined, port: 8080, names }).message).toMatch(
    /^port 8080 is/,
  );
});
