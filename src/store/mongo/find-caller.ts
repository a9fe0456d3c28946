import { type Collection, ReadConcern } from "mongodb";
import { isRevoked, withApplications } from "../session-applications.js";
import type { CallerRecords, ChangeCaller } from "../trail.js";
import {
  type ApplicationDocument,
  type SessionDocument,
  toApplication,
  toSession,
} from "./documents.js";
import { createLookup } from "./lookup.js";
import type { Time } from "./time.js";

/** The latest that the primary knows. One that was replaced cannot commit what rests on it. */
const latest = { readConcern: new ReadConcern("local") };

/** Reads the caller of a change as it is now. */
export function createFindCaller(
  applications: Collection<ApplicationDocument>,
  sessions: Collection<SessionDocument>,
  time: Time,
): (caller: ChangeCaller) => Promise<CallerRecords | undefined> {
  const findApplication = createLookup(applications, time, () => latest, toApplication);
  const findSession = createLookup(sessions, time, () => latest, toSession);
  return async ({ applicationId, sessionId, authorizerId = applicationId }) => {
    if (sessionId === undefined) {
      const application = await findApplication(applicationId);
      return application && { application };
    }
    const ids = [applicationId, authorizerId];
    const [session, ...applications] = await Promise.all([
      findSession(sessionId),
      ...ids.map(findApplication),
    ]);
    const found = session && withApplications(session, (id) => applications[ids.indexOf(id)]);
    return isRevoked(found) ? undefined : found;
  };
}
