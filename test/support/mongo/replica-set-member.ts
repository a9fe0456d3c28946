import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { type Document, MongoClient } from "mongodb";
import { killWithParent } from "../service/child-process.js";
import { until } from "../until.js";
import { type MongodBinary, mongodArgs } from "./mongod.js";
import { type PartitionProxy, startPartitionProxy } from "./partition-proxy.js";

/** A member of a replica set. Other members and clients connect to it over a proxy. */
export interface Member {
  /** Its name in the replica set configuration. */
  readonly host: string;
  /** Its name at the proxies of the other members. */
  readonly name: string;
  readonly proxy: PartitionProxy;
  isRunning(): boolean;
  start(): Promise<void>;
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Sends a command directly to this member, without the proxy. */
  command(command: Document, serverSelectionTimeoutMS?: number): Promise<Document>;
}

interface MemberOptions {
  readonly binary: MongodBinary;
  readonly port: number;
  readonly folder: string;
  readonly set: string;
}

export async function createMember({ binary, port, folder, set }: MemberOptions): Promise<Member> {
  const proxy = await startPartitionProxy(port, identifyCaller);
  let child: ChildProcess | undefined;

  async function command(command: Document, serverSelectionTimeoutMS = 3_000): Promise<Document> {
    const uri = `mongodb://127.0.0.1:${port}/?directConnection=true`;
    const client = new MongoClient(uri, { serverSelectionTimeoutMS });
    try {
      return await client.db("admin").command(command);
    } finally {
      await client.close();
    }
  }

  const isRunning = () => child !== undefined && child.exitCode === null && !child.signalCode;

  const isReachable = () =>
    command({ ping: 1 }).then(
      () => true,
      () => false,
    );

  return {
    host: `127.0.0.1:${proxy.port}`,
    name: nameOf(port),
    proxy,

    isRunning,

    async start() {
      await mkdir(folder, { recursive: true });
      const location = ["--port", String(port), "--bind_ip", "127.0.0.1", "--dbpath", folder];
      child = spawn(binary.path, ["--replSet", set, ...location, ...quickSync, ...mongodArgs], {
        env: { ...process.env, ...binary.env },
        stdio: "ignore",
      });
      killWithParent(child);
      await until(async () => {
        if (!isRunning()) {
          throw new Error(`mongod at port ${port} exited with ${child?.exitCode}.`);
        }
        return isReachable();
      });
    },

    async kill() {
      if (child && isRunning()) {
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }
    },

    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
    command,
  };
}

/** A member detects a disconnected sync source in one second instead of five. */
const quickSync = ["--setParameter", "oplogNetworkTimeoutBufferSeconds=1"];

const nameOf = (port: number | string) => `member ${port}`;

/** With failure injection enabled, a mongod identifies itself in its hello. A client is identified by its appName. */
function identifyCaller(firstBytes: Buffer): string {
  const text = firstBytes.toString("latin1");
  const [, port] = /hostInfo\0.{4}[^\0]*:(\d+)\0/s.exec(text) ?? [];
  const [, appName = ""] = /application\0.{5}name\0.{4}([^\0]*)\0/s.exec(text) ?? [];
  return port === undefined ? appName : nameOf(port);
}
