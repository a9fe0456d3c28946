import { useQuery } from "@connectrpc/connect-query";
import { problemOf } from "latchkey/client";
import { AccessService } from "latchkey/proto";

/** Shows the application that the key belongs to. */
export function Self({ onLeave }: { readonly onLeave: () => void }) {
  const { data: self, error } = useQuery(AccessService.method.whoAmI);
  return (
    <p role="status">
      {error && problemOf(error).detail}
      {self && `${self.name}, a ${self.type} application.`}{" "}
      <button type="button" onClick={onLeave}>
        Forget the key
      </button>
    </p>
  );
}
