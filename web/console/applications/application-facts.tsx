import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { ApplicationLink } from "../names/application-link.js";
import { Chips } from "../ui/chips.js";
import { CopyButton } from "../ui/copy-button.js";
import { Facts } from "../ui/facts.js";
import { Moment } from "../ui/moment.js";

/** What is known of an application, but for what it may do. */
export function ApplicationFacts({ application }: { readonly application: Application }) {
  const { id, allowedOrigins, allowedCidrs, sessionQuota, modifiedAt } = application;
  return (
    <section className="card" aria-labelledby="facts">
      <h2 id="facts">About it</h2>
      <Facts
        of={[
          [
            "Id",
            <span key="id" className="actions">
              <code>{id}</code>
              <CopyButton text={id} label="Copy id" />
            </span>,
          ],
          ["Last used", <Moment key="at" at={application.lastUsedAt} />],
          ["Expires", <Moment key="at" at={application.expiresAt} />],
          ["From origins", <Places key="places" names={allowedOrigins} />],
          ["From networks", <Places key="places" names={allowedCidrs} />],
          ...(sessionQuota === undefined
            ? []
            : [["Session quota", sessionQuota.toLocaleString()] as const]),
          ["Created", <Change key="at" at={application.createdAt} by={application.createdBy} />],
          ...(modifiedAt
            ? [
                [
                  "Changed",
                  <Change key="at" at={modifiedAt} by={application.modifiedBy} />,
                ] as const,
              ]
            : []),
        ]}
      />
    </section>
  );
}

function Places({ names }: { readonly names: readonly string[] }) {
  return names.length === 0 ? "everywhere" : <Chips names={names} />;
}

function Change({
  at,
  by,
}: {
  readonly at: Application["createdAt"];
  readonly by: string | undefined;
}) {
  return (
    <>
      <Moment at={at} />
      {by !== undefined && (
        <>
          {" by "}
          <ApplicationLink id={by} />
        </>
      )}
    </>
  );
}
