import { createClient, type Transport } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { Live } from "../live/live.js";
import { WithAccess } from "./access.js";
import { connect } from "./connection.js";
import { keptKey } from "./kept-key.js";
import { createQueries } from "./queries.js";
import { setReached } from "./reach.js";
import { SignIn } from "./sign-in.js";

const keyEnded =
  "Your key does not work any more: it has expired, or was replaced, disabled or deleted. Sign in with another one.";

interface Visit {
  readonly me: WhoAmIResponse;
  readonly transport: Transport;
  readonly queries: QueryClient;
}

/** Shows its children to whoever has signed in, and asks others to. */
export function SignedIn({ children }: { readonly children: ReactNode }) {
  const [visit, setVisit] = useState<Visit>();
  const [farewell, setFarewell] = useState<string>();
  const present = useRef<Visit>(undefined);

  /** Answers that come late, for a visit that is over, end none that has begun since. */
  function leave(left: Visit, reason?: string): void {
    if (present.current === left) {
      present.current = undefined;
      keptKey.forget();
      left.queries.clear();
      setFarewell(reason);
      setVisit(undefined);
    }
  }

  async function enter(key: string, isStillWanted = () => true): Promise<void> {
    const me = await createClient(AccessService, connect({ key, onReach: setReached })).whoAmI({});
    if (!isStillWanted()) {
      return;
    }
    const onKeyRefused = () => leave(entered, keyEnded);
    const transport = connect({ key, onReach: setReached, onKeyRefused });
    const entered: Visit = { me, transport, queries: createQueries() };
    present.current = entered;
    setFarewell(undefined);
    setVisit(entered);
  }

  if (!visit) {
    return <SignIn enter={enter} farewell={farewell} />;
  }
  return (
    <TransportProvider transport={visit.transport}>
      <QueryClientProvider client={visit.queries}>
        <WithAccess first={visit.me} signOut={() => leave(visit)}>
          <Live>{children}</Live>
        </WithAccess>
      </QueryClientProvider>
    </TransportProvider>
  );
}
