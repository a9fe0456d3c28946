import { useAccess } from "../access/access.js";

/** Warns whoever is about to shut the door behind which they stand. */
export function OwnKeyWarning({ id }: { readonly id: string }) {
  const { me } = useAccess();
  return me.applicationId === id ? (
    <p className="notice" data-tone="warning">
      You are signed in with a key of this application. Where that stops working you are signed out.
    </p>
  ) : null;
}
