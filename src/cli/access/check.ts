import {
  type CheckAccessResponse,
  CheckAccessResponseSchema,
  type GrantDecision,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { exitCodes } from "../exit-codes.js";
import { readSecret } from "../secret-input.js";
import { detailsText, type Look } from "../table.js";
import { momentText } from "../time-text.js";
import { type CallingFlags, withClient } from "../with-client.js";

interface Flags extends CallingFlags {
  readonly subjectFile?: string;
  readonly id?: string;
  readonly container?: string;
  readonly origin?: string;
  readonly address?: string;
}

/** Asks whether a key may do something; the exit code tells it too. */
export async function checkAccess(permission: string, flags: Flags): Promise<void> {
  const { id, container, origin, address } = flags;
  const token =
    id === undefined && container === undefined
      ? {}
      : { token: { ...(id && { id }), ...(container && { container }) } };
  await withClient(flags, async ({ client, call, output }) => {
    const key = await readSecret({ noun: "the key to check", file: flags.subjectFile });
    const place = { ...(origin && { origin }), ...(address && { address }) };
    const answer = await client.access.checkAccess({ key, permission, ...token, ...place }, call);
    output.show(CheckAccessResponseSchema, answer, (look) => answerText(answer, look));
    process.exitCode = exitCodes[answer.allowed ? "done" : "denied"].code;
  });
}

function answerText(answer: CheckAccessResponse, look: Look): string {
  const { good, bad } = look.colours;
  const facts = detailsText(
    [
      ["transform", answer.transform],
      ["decided by", decidedText(answer)],
      ["reason", answer.reason],
      ["detail", answer.detail],
      ["application", answer.applicationId],
      ["session", answer.sessionId],
      ["authorized by", answer.authorizedBy],
      ["by the session", sideText(answer.bySession)],
      ["by its authorizer", sideText(answer.byAuthorizer)],
      ["limited by", answer.limitedBy],
      ["expires", momentText(answer.expiresAt)],
    ],
    look,
  );
  return `${answer.allowed ? good("allowed") : bad("denied")}\n${facts}`;
}

/** What the grants of a session, or those of its authorizer, say. */
function sideText(side: GrantDecision | undefined): string | undefined {
  return side?.allowed ? `${side.transform}: ${decidedText(side)}` : side?.reason;
}

function decidedText({ decidedBy }: Pick<GrantDecision, "decidedBy">): string | undefined {
  if (decidedBy?.rule) {
    const { place, priority, description } = decidedBy.rule;
    return `rules[${place}], priority ${priority}${description ? `: ${description}` : ""}`;
  }
  return decidedBy?.permission && `the permission ${decidedBy.permission}, on everything`;
}
