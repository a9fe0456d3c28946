import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../../src/client/client.js";
import { sendKey } from "../../src/contract/client-interceptors.js";

export interface GrpcClient extends LatchkeyClient {
  close(): void;
}

/** A client that sends nothing twice: what gets lost is to be seen, which the package's own client would make good. */
export function createGrpcClient(url: string, key: string): GrpcClient {
  const sessionManager = new Http2SessionManager(url);
  const interceptors = [sendKey({ url, key })];
  const transport = createGrpcTransport({ baseUrl: url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}
