import type { ClientSession, Collection } from "mongodb";
import type { Awaitable } from "../../awaitable.js";
import { firstMark, isFarBehind, isGoodMark, isToTell, markName } from "../ends.js";
import type { Ending, EventStore } from "../events.js";
import type { ApplicationDocument } from "./documents.js";
import type { EventWriter } from "./event-writer.js";
import { type EndPlace, type FoundEnd, findEnds, later, placeBefore } from "./find-ends.js";
import { findOtherManager } from "./managers.js";
import { limitsIn, reach } from "./reach.js";
import type { RunTransaction } from "./run-transaction.js";

export interface MarkDocument extends EndPlace {
  readonly _id: string;
}

export interface EndsTellerOptions {
  readonly runTransaction: RunTransaction;
  readonly applications: Collection<ApplicationDocument>;
  readonly marks: Collection<MarkDocument>;
  readonly events: EventWriter;
  /** The store's clock. */
  readonly now: () => Awaitable<number>;
}

/** Ends looked at in one transaction. */
const batchSize = 200;

/**
 * Tells of what ends, by a mark for each lead: the place of the last end that
 * was looked at. Whoever moves it has told of what is before it, in the same
 * transaction, so that of two instances one tells. Ends that are set behind
 * the mark are those of what was made within the lead.
 */
export function createEndsTeller(options: EndsTellerOptions): EventStore["addForEnds"] {
  const { runTransaction, applications, marks, events, now } = options;

  async function look(lead: number, session?: ClientSession) {
    const _id = markName(lead);
    const present = await now();
    const written = await reach(() => marks.findOne({ _id }, limitsIn(session)));
    const isGood = written && isGoodMark(written.moment.getTime(), lead, present);
    const mark = isGood ? written : undefined;
    const after = mark ?? placeBefore(firstMark(lead, present));
    const range = { after, until: new Date(present + lead), limit: batchSize };
    const found = await findEnds(applications, range, session);
    return { _id, present, mark, after, found };
  }

  /** Whether another application manages a tenant beyond the end of one. */
  async function isManagedAfter(
    { tenantId, applicationId: id, at }: FoundEnd["ending"],
    session: ClientSession,
  ): Promise<boolean> {
    const isLater = { $or: [{ expires_at: null }, { expires_at: { $gt: new Date(at) } }] };
    return (await findOtherManager(applications, { tenantId, id }, isLater, session)) !== null;
  }

  async function tell(
    lead: number,
    toEvents: Parameters<EventStore["addForEnds"]>[1],
    session: ClientSession,
  ): Promise<number> {
    const { _id, present, after, found } = await look(lead, session);
    const told = found.filter(({ facts }) => isToTell(facts, lead, present));
    const endings: Ending[] = [];
    for (const { ending, isOfManager } of told) {
      const leavesNoManager = isOfManager && !(await isManagedAfter(ending, session));
      endings.push({ ...ending, leavesNoManager });
    }
    await events.insert(endings.flatMap(toEvents), session);
    const last = found.at(-1)?.place ?? after;
    const reached = found.length < batchSize ? later(last, placeBefore(present + lead)) : last;
    const { moment, application_id, key_id } = reached;
    await reach(() =>
      marks.updateOne(
        { _id },
        { $set: { moment, application_id, key_id } },
        { upsert: true, ...limitsIn(session) },
      ),
    );
    return found.length;
  }

  return async (lead, toEvents) => {
    const { present, mark, found } = await look(lead);
    const isBehind = !mark || isFarBehind(mark.moment.getTime(), lead, present);
    if (found.length === 0 && !isBehind) {
      return 0;
    }
    return runTransaction(async (session, commit) => {
      const count = await tell(lead, toEvents, session);
      await commit();
      return count;
    });
  };
}
