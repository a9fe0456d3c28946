import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { heldPermissions } from "../../../src/contract/grants.js";
import { retryDelayMs, useOutage } from "../ui/outage.js";
import { serviceNow } from "../ui/service-clock.js";

/** The signed-in key and its permissions. */
export interface SignedInKey {
  readonly me: WhoAmIResponse;
  /** Whether the key has a permission, directly or through a rule. */
  may(permission: string): boolean;
  signOut(): void;
}

const SignedInKeyContext = createContext<SignedInKey | undefined>(undefined);

export function useSignedInKey(): SignedInKey {
  const signedIn = useContext(SignedInKeyContext);
  if (!signedIn) {
    throw new Error("useSignedInKey must be used within SignedInKeyProvider.");
  }
  return signedIn;
}

interface SignedInKeyProviderProps {
  /** The response at sign-in. */
  readonly first: WhoAmIResponse;
  signOut(): void;
  readonly children: ReactNode;
}

/** Provides the signed-in key, and refetches it at intervals. */
export function SignedInKeyProvider({ first, signOut, children }: SignedInKeyProviderProps) {
  const isOffline = useOutage() !== undefined;
  useRefetchOnReconnect(isOffline);
  const { data: me = first } = useQuery(
    AccessService.method.whoAmI,
    {},
    {
      initialData: first,
      refetchInterval: ({ state }) => refetchDelayMs(state.data ?? first, isOffline),
    },
  );
  const held = new Set(heldPermissions(me));
  const signedIn: SignedInKey = { me, may: (permission) => held.has(permission), signOut };
  return <SignedInKeyContext value={signedIn}>{children}</SignedInKeyContext>;
}

/** Refetches when the key expires, and every 30 seconds for changed permissions. */
function refetchDelayMs({ expiresAt }: WhoAmIResponse, isOffline: boolean): number {
  if (isOffline) {
    return retryDelayMs;
  }
  const left = expiresAt ? timestampMs(expiresAt) - serviceNow() : Number.POSITIVE_INFINITY;
  return Math.min(Math.max(left, 0) + 1_000, 30_000);
}

/** Data may be stale after an outage. */
function useRefetchOnReconnect(isOffline: boolean): void {
  const queries = useQueryClient();
  const wasOffline = useRef(isOffline);
  useEffect(() => {
    if (wasOffline.current && !isOffline) {
      void queries.invalidateQueries();
    }
    wasOffline.current = isOffline;
  }, [isOffline, queries]);
}
