import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useMemo } from "react";

/**
 * Calls a service with the key of the person. Unlike those of a query, its
 * answers are kept nowhere, which those that hold a new key must not be.
 */
export function useClient<Service extends DescService>(service: Service): Client<Service> {
  const transport = useTransport();
  return useMemo(() => createClient(service, transport), [service, transport]);
}
