import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { formatNumber } from "../../common/count.js";
import { Grants } from "../rules/grants.js";
import { ChipsOrAny, Copyable, DescriptionList } from "../ui/display.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { ApplicationLink } from "./application-display.js";
import { EditableCard, type Editing } from "./form/editable-card.js";

interface SectionProps {
  readonly application: Application;
  readonly editing: Editing;
}

export function Details(props: SectionProps) {
  const { application } = props;
  const { id, externalId, lastUsedAt, expiresAt, modifiedAt } = application;
  return (
    <EditableCard {...props} label="Details">
      <DescriptionList
        items={[
          ["ID", <Copyable key="id" text={id} label="Copy ID" />],
          [
            "External ID",
            externalId === undefined ? (
              <span key="none" className="muted">
                none
              </span>
            ) : (
              <Copyable key="id" text={externalId} label="Copy external ID" />
            ),
          ],
          ["Expires", <ExpiryTime key="at" at={expiresAt} />],
          ["Last used", <TimeAgo key="at" at={lastUsedAt} />],
          ["Created", <Change key="at" at={application.createdAt} by={application.createdBy} />],
          ...(modifiedAt
            ? [
                [
                  "Updated",
                  <Change key="at" at={modifiedAt} by={application.modifiedBy} />,
                ] as const,
              ]
            : []),
        ]}
      />
    </EditableCard>
  );
}

export function Permissions(props: SectionProps) {
  const { permissions, rules } = props.application;
  return (
    <EditableCard {...props} label="Permissions">
      <Grants permissions={permissions} rules={rules} />
    </EditableCard>
  );
}

export function Restrictions(props: SectionProps) {
  const { type, allowedOrigins, allowedCidrs, sessionQuota } = props.application;
  const isPublic = type === "public";
  return (
    <EditableCard {...props} label="Restrictions">
      <DescriptionList
        items={[
          ...(isPublic
            ? [["Origins", <ChipsOrAny key="origins" names={allowedOrigins} />] as const]
            : []),
          ["Networks", <ChipsOrAny key="networks" names={allowedCidrs} />],
          ...(isPublic
            ? [
                [
                  "Session quota",
                  sessionQuota === undefined ? (
                    <span key="quota" className="muted">
                      default
                    </span>
                  ) : (
                    formatNumber(sessionQuota)
                  ),
                ] as const,
              ]
            : []),
        ]}
      />
    </EditableCard>
  );
}

export function Metadata(props: SectionProps) {
  const pairs = Object.entries(props.application.metadata);
  return (
    <EditableCard {...props} label="Metadata">
      {pairs.length === 0 ? (
        <p className="muted">Key-value pairs for your own use, such as the owner. None yet.</p>
      ) : (
        <DescriptionList
          items={pairs.map(([key, value]) => [
            key,
            <span key={key} className="multiline">
              {value}
            </span>,
          ])}
        />
      )}
    </EditableCard>
  );
}

interface ChangeProps {
  readonly at: Application["createdAt"];
  readonly by: string | undefined;
}

function Change({ at, by }: ChangeProps) {
  return (
    <>
      <TimeAgo at={at} />
      {by !== undefined && (
        <>
          {" by "}
          <ApplicationLink id={by} />
        </>
      )}
    </>
  );
}
