import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { Badge } from "../ui/display.js";
import { useNow } from "../ui/time.js";

export function TypeBadge({ type }: Pick<Application, "type">) {
  return <Badge tone={type === "management" ? "accent" : "plain"}>{type}</Badge>;
}

export function StatusBadge({ status, expiresAt }: Pick<Application, "status" | "expiresAt">) {
  const now = useNow(10_000);
  if (expiresAt && timestampMs(expiresAt) <= now) {
    return <Badge tone="danger">expired</Badge>;
  }
  return <Badge tone={status === "enabled" ? "good" : "warning"}>{status}</Badge>;
}
