import { Link } from "wouter";
import { useApplicationName } from "./application-names.js";

interface ApplicationNameProps {
  readonly id: string;
  /** What it is or was called, where that is known otherwise. */
  readonly knownAs?: string | undefined;
}

/** The name of an application, or its id where it has none any more. */
export function ApplicationName({ id, knownAs }: ApplicationNameProps) {
  const name = useApplicationName(id) ?? knownAs;
  return name === undefined ? <code title={id}>{shortened(id)}</code> : <b>{name}</b>;
}

/** The name of an application with the way to its page. */
export function ApplicationLink({ id, knownAs }: ApplicationNameProps) {
  const name = useApplicationName(id);
  return name ? (
    <Link href={`/applications/${id}`}>{name}</Link>
  ) : (
    <ApplicationName id={id} knownAs={knownAs} />
  );
}

/** Enough of an id to tell it from others: its end, as the beginning is a time. */
export function shortened(id: string): string {
  return `…${id.slice(-8)}`;
}
