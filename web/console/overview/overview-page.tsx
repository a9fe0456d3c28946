import { useQuery } from "@connectrpc/connect-query";
import { FlaskConical, Plus } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { type Overview, OverviewService } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { expiringDays, unusedDays } from "../../../src/contract/defaults.js";
import { formatNumber } from "../../common/count.js";
import { RecentEvents } from "../activity/recent-events.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink } from "../ui/buttons.js";
import { Notice, Skeleton } from "../ui/display.js";
import { Page, Problem } from "../ui/page.js";
import { GettingStarted, GuardCard, useOwnApplications } from "./getting-started.js";
import { ServiceHealth } from "./service-health.js";

const refetchInterval = 10_000;

/** The state of the tenant, and the first steps if it is new. */
export default function OverviewPage() {
  const { may } = useSignedInKey();
  return (
    <Page
      title="Overview"
      actions={
        <>
          <ButtonLink icon={FlaskConical} href="/sessions/try">
            Try a session
          </ButtonLink>
          {may("application:create") && (
            <ButtonLink tone="primary" icon={Plus} href="/applications/new">
              New application
            </ButtonLink>
          )}
        </>
      }
    >
      {may("application:read") ? (
        <Tenant />
      ) : (
        <>
          <GettingStarted />
          {may("session:read") && <OpenSessions />}
        </>
      )}
      <div className="overview-columns">
        <RecentEvents size={8} />
        <ServiceHealth />
      </div>
      <GuardCard />
    </Page>
  );
}

function Tenant() {
  const { data, error, refetch } = useQuery(
    OverviewService.method.getOverview,
    {},
    { refetchInterval },
  );
  const own = useOwnApplications(data);
  if (!data) {
    return error ? (
      <Problem error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton lines={3} label="Loading the counts" />
    );
  }
  return (
    <>
      {data.untrustedForwarding && (
        <Notice tone="warning">
          <p>
            Calls have forwarding headers from a peer that is not in <code>TRUSTED_PROXIES</code>.
            If it is your proxy, add its address, or all its clients share one in limits,
            restrictions and activity. The log of the service has the address as <code>peer</code>.
          </p>
        </Notice>
      )}
      {own && !(own.hasPrivate && own.hasPublic) && <GettingStarted own={own} />}
      <Counts overview={data} />
    </>
  );
}

function Counts({ overview: { applications, sessions } }: { readonly overview: Overview }) {
  if (!applications) {
    return null;
  }
  const { total, expiring, unused } = applications;
  return (
    <ul className="counts" aria-label="Counts">
      <Count label="Applications" value={total} href="/applications">
        <span className="count-links">
          {(["private", "public", "management"] as const).map((type) => (
            <Link key={type} href={`/applications?type=${type}`}>
              {formatNumber(applications[type])} {type}
            </Link>
          ))}
        </span>
        <span className="count-links">
          {(["enabled", "disabled"] as const).map((status) => (
            <Link key={status} href={`/applications?status=${status}`}>
              {formatNumber(applications[status])} {status}
            </Link>
          ))}
        </span>
      </Count>
      <Count
        label={`Applications expiring within ${expiringDays} days`}
        value={expiring}
        href="/applications?view=expiring"
        isWarning={expiring > 0}
      >
        {expiring === 0 ? "No application expires soon." : "Extend or replace them in time."}
      </Count>
      <Count
        label={`Applications unused for ${unusedDays} days`}
        value={unused}
        href="/applications?view=unused"
        isWarning={unused > 0}
      >
        {unused === 0 ? "Every application is in use or new." : "Delete what nobody needs."}
      </Count>
      {sessions && <SessionCount count={sessions.open} isLowerBound={sessions.capped} />}
    </ul>
  );
}

/** For keys that cannot read the counts of the overview. */
function OpenSessions() {
  const { data } = useQuery(
    SessionService.method.listSessions,
    { size: 1, includeTotal: true },
    { refetchInterval },
  );
  const count = data?.pagination?.totalItems;
  return count === undefined ? null : (
    <ul className="counts" aria-label="Counts">
      <SessionCount count={count} />
    </ul>
  );
}

interface SessionCountProps {
  readonly count: number;
  readonly isLowerBound?: boolean | undefined;
}

function SessionCount({ count, isLowerBound }: SessionCountProps) {
  return (
    <Count label="Open sessions" value={count} isLowerBound={isLowerBound} href="/sessions">
      Short-lived keys of browsers and mobile apps.
    </Count>
  );
}

interface CountProps {
  readonly label: string;
  readonly value: number;
  /** Whether there are more than counted. */
  readonly isLowerBound?: boolean | undefined;
  readonly isWarning?: boolean;
  readonly href: string;
  readonly children: ReactNode;
}

function Count({ label, value, isLowerBound = false, isWarning, href, children }: CountProps) {
  return (
    <li className="count" data-warning={isWarning || undefined}>
      <Link className="count-link" href={href}>
        <span className="count-label">{label}</span>
        <span className="count-value">
          {formatNumber(value)}
          {isLowerBound && "+"}
        </span>
      </Link>
      <span className="count-note">{children}</span>
    </li>
  );
}
