import { useQuery } from "@tanstack/react-query";
import { Badge, Card, DescriptionList } from "../ui/display.js";
import { callTimeoutMs } from "../ui/outage.js";

const refetchInterval = 10_000;

/** Whether the service and its store respond, and the version. */
export function ServiceHealth() {
  const { data: isReady, error } = useQuery({
    queryKey: ["readyz"],
    queryFn: () => get("/readyz").then(({ ok }) => ok),
    refetchInterval,
  });
  const { data: version } = useQuery({
    queryKey: ["version"],
    queryFn: async () => String((await (await get("/")).json()).version),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Card label="Health">
      <DescriptionList
        items={[
          ["Service", <State key="service" isUp={error ? false : isReady !== undefined} />],
          ["Store", <State key="store" isUp={error ? undefined : isReady} />],
          ["Version", version ?? "–"],
        ]}
      />
    </Card>
  );
}

/** `undefined` while it is not known. */
function State({ isUp }: { readonly isUp: boolean | undefined }) {
  if (isUp === undefined) {
    return <span className="muted">unknown</span>;
  }
  return isUp ? (
    <Badge tone="good" hasDot>
      responding
    </Badge>
  ) : (
    <Badge tone="danger" hasDot>
      not responding
    </Badge>
  );
}

function get(path: string): Promise<Response> {
  const headers = { accept: "application/json" };
  return fetch(path, { headers, signal: AbortSignal.timeout(callTimeoutMs) });
}
