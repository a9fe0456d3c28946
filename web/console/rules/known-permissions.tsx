import { useQuery } from "@connectrpc/connect-query";
import { useMemo } from "react";
import {
  AccessService,
  type KnownPermission,
  ListPermissionsRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { maximumOf } from "../../../src/contract/fields.js";
import type { Suggestion } from "../ui/combobox.js";

/** The permissions that the service knows, once they are loaded. */
export function useKnownPermissions(): readonly KnownPermission[] | undefined {
  const { data } = useQuery(
    AccessService.method.listPermissions,
    { size: maximumOf(ListPermissionsRequestSchema.field.size) },
    { staleTime: 60_000 },
  );
  return data?.data;
}

/** The known permissions that contain a text. All if the text is one of them. */
export function usePermissionSuggestions(text: string): readonly Suggestion[] {
  const known = useKnownPermissions();
  return useMemo(() => {
    const isChosen = known?.some(({ name }) => name === text);
    return (known ?? [])
      .filter(({ name }) => isChosen || name.includes(text.toLowerCase()))
      .map(toSuggestion);
  }, [known, text]);
}

export function toSuggestion({ name, allows }: KnownPermission): Suggestion {
  return {
    value: name,
    label: name,
    details: (
      <span className="permission-option">
        <code>{name}</code>
        <span className="hint">{allows}</span>
      </span>
    ),
  };
}
