import { startProxy, type TcpProxy } from "../../support/http/tcp-proxy.js";
import { uri } from "../../support/mongo/uri.js";

interface MongoProxy {
  readonly proxy: TcpProxy;
  /** The URI of MongoDB through the proxy. */
  readonly uri: string;
}

/** Starts a proxy in front of the MongoDB of this test run. */
export async function startMongoProxy(): Promise<MongoProxy> {
  const port = Number(/:(\d+)/.exec(uri.replace("mongodb://", ""))?.[1]);
  const proxy = await startProxy(port);
  return { proxy, uri: `${proxy.url.replace("http", "mongodb")}/?directConnection=true` };
}
