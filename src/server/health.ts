import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/grpc/health/v1/health_pb.js";
import { Problem } from "../errors.js";
import type { Readiness } from "./readiness.js";

/** The standard gRPC health service, for the server as a whole (empty name) and for its services. */
export function createHealthHandlers(
  readiness: Readiness,
  serviceNames: readonly string[],
): ServiceImpl<typeof Health> {
  const isKnown = (name: string) => name === "" || serviceNames.includes(name);
  const statusOf = (isReady: boolean) => (isReady ? Status.SERVING : Status.NOT_SERVING);
  return {
    async check({ service }) {
      if (!isKnown(service)) {
        throw new Problem("service_not_found", "There is no such service here.");
      }
      return { status: statusOf(await readiness.check()) };
    },

    async *watch({ service }, { signal }) {
      if (!isKnown(service)) {
        yield { status: Status.SERVICE_UNKNOWN };
        await readiness.end(signal);
        return;
      }
      for await (const isReady of readiness.watch(signal)) {
        yield { status: statusOf(isReady) };
      }
    },
  };
}
