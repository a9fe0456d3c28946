import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { retryDelayMs, useIsReachable } from "./reachability.js";
import { serviceNow } from "./service-clock.js";

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

interface WithAccessProps {
  /** What the service said when the person signed in. */
  readonly first: WhoAmIResponse;
  signOut(): void;
  readonly children: ReactNode;
}

/** Lets its children know who has signed in, and asks the service again now and then. */
export function AccessProvider({ first, signOut, children }: WithAccessProps) {
  const isReachable = useIsReachable();
  useRefetchOnReconnect(!isReachable);
  const { data: me = first } = useQuery(
    AccessService.method.whoAmI,
    {},
    {
      initialData: first,
      refetchInterval: ({ state }) => refetchDelayMs(state.data ?? first, isReachable),
    },
  );
  const held = new Set([...me.permissions, ...me.rules.flatMap(({ permissions }) => permissions)]);
  const access: Access = { me, may: (permission) => held.has(permission), signOut };
  return <AccessContext value={access}>{children}</AccessContext>;
}

/** Milliseconds after which to ask again: what a key may do can change, and a key can end. */
function refetchDelayMs({ expiresAt }: WhoAmIResponse, isReachable: boolean): number {
  if (!isReachable) {
    return retryDelayMs;
  }
  const left = expiresAt ? timestampMs(expiresAt) - serviceNow() : Number.POSITIVE_INFINITY;
  return Math.min(Math.max(left, 0) + 1_000, 30_000);
}

/** What is shown may be old after a time without the service. */
function useRefetchOnReconnect(isLost: boolean): void {
  const queries = useQueryClient();
  const wasLost = useRef(isLost);
  useEffect(() => {
    if (wasLost.current && !isLost) {
      void queries.invalidateQueries();
    }
    wasLost.current = isLost;
  }, [isLost, queries]);
}
