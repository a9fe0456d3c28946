import { createClient, type Transport } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useState } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { connect } from "./connection.js";
import { keptKey } from "./kept-key.js";
import { createQueries } from "./queries.js";
import { setReached } from "./reach.js";
import { SignIn } from "./sign-in.js";

/** Who the person is to the service, and what that allows. */
export interface Access {
  readonly me: WhoAmIResponse;
  /** Whether the key holds a permission on everything, or by a rule. */
  may(permission: string): boolean;
  signOut(): void;
}

const AccessContext = createContext<Access | undefined>(undefined);

export function useAccess(): Access {
  const access = useContext(AccessContext);
  if (!access) {
    throw new Error("Nobody is signed in here.");
  }
  return access;
}

interface Visit {
  readonly me: WhoAmIResponse;
  readonly transport: Transport;
  readonly queries: QueryClient;
}

/** Shows its children to whoever has signed in, and asks others to. */
export function SignedIn({ children }: { readonly children: ReactNode }) {
  const [visit, setVisit] = useState<Visit>();
  const [farewell, setFarewell] = useState<string>();

  function leave(reason?: string): void {
    keptKey.forget();
    setFarewell(reason);
    setVisit(undefined);
  }

  async function enter(key: string): Promise<void> {
    const me = await createClient(AccessService, connect({ key, onReach: setReached })).whoAmI({});
    const transport = connect({
      key,
      onReach: setReached,
      onKeyRefused: () =>
        leave(
          "Your key does not work any more: it has expired, or was replaced, disabled or deleted. Sign in with another one.",
        ),
    });
    setFarewell(undefined);
    setVisit({ me, transport, queries: createQueries() });
  }

  if (!visit) {
    return <SignIn enter={enter} farewell={farewell} />;
  }
  const { me, transport, queries } = visit;
  const held = new Set([...me.permissions, ...me.rules.flatMap(({ permissions }) => permissions)]);
  const access: Access = { me, may: (permission) => held.has(permission), signOut: () => leave() };
  return (
    <AccessContext value={access}>
      <TransportProvider transport={transport}>
        <QueryClientProvider client={queries}>{children}</QueryClientProvider>
      </TransportProvider>
    </AccessContext>
  );
}
