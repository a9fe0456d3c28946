import { useQuery } from "@connectrpc/connect-query";
import { problemOf } from "latchkey/client";
import { AccessService } from "latchkey/proto";

/** The owner of the key. */
export function Self({ onSignOut }: { readonly onSignOut: () => void }) {
  const { data: self, error } = useQuery(AccessService.method.whoAmI);
  return (
    <p role="status">
      {error && problemOf(error).detail}
      {self && `${self.name}, a ${self.type} application.`}{" "}
      <button type="button" onClick={onSignOut}>
        Sign out
      </button>
    </p>
  );
}
