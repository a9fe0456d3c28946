import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { Badge } from "../ui/display.js";
import { useNow } from "../ui/time.js";
import { useApplicationName } from "./application-names.js";

interface ApplicationNameProps {
  readonly id: string;
  /** The name in the event, for deleted applications. */
  readonly fallbackName?: string | undefined;
}

/** The name of an application, or its id if it was deleted. */
export function ApplicationName({ id, fallbackName }: ApplicationNameProps) {
  const name = useApplicationName(id) ?? fallbackName;
  return name === undefined ? <code title={id}>{shortId(id)}</code> : <b title={name}>{name}</b>;
}

export function ApplicationLink({ id, fallbackName }: ApplicationNameProps) {
  const name = useApplicationName(id);
  return name ? (
    <Link href={`/applications/${id}`} title={name}>
      {name}
    </Link>
  ) : (
    <ApplicationName id={id} fallbackName={fallbackName} />
  );
}

/** The end of an id. Ids start with a timestamp. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}

export function TypeBadge({ type }: Pick<Application, "type">) {
  return <Badge tone={type === "management" ? "accent" : "plain"}>{type}</Badge>;
}

export function StatusBadge({ status, expiresAt }: Pick<Application, "status" | "expiresAt">) {
  const now = useNow();
  if (expiresAt && timestampMs(expiresAt) <= now) {
    return <Badge tone="danger">expired</Badge>;
  }
  return <Badge tone={status === "enabled" ? "good" : "warning"}>{status}</Badge>;
}
