import { Link } from "wouter";
import { useApplicationName } from "./application-names.js";

interface ApplicationLinkProps {
  readonly id: string;
  /** What it is or was called, where that is known otherwise. */
  readonly knownAs?: string | undefined;
}

/** The name of an application with the way to its page, or its id where it has none any more. */
export function ApplicationLink({ id, knownAs }: ApplicationLinkProps) {
  const name = useApplicationName(id);
  if (name === undefined || name === null) {
    return knownAs === undefined ? <code title={id}>{shortened(id)}</code> : <b>{knownAs}</b>;
  }
  return <Link href={`/applications/${id}`}>{name}</Link>;
}

/** Enough of an id to tell it from others: its end, as the beginning is a time. */
export function shortened(id: string): string {
  return `…${id.slice(-8)}`;
}
