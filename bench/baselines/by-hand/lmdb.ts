/** The service by hand on `lmdb`, as durable as Latchkey, with an audit log. */
import { open } from "lmdb";
import {
  type Application,
  createApplications,
  type Entry,
  type Session,
  serve,
} from "./service.js";

const { DATA_DIR = "", APPLICATION = "", APPLICATIONS } = process.env;

// A commit is visible only once it is on disk.
const root = open({ path: DATA_DIR, overlappingSync: false, mapSize: 2 ** 36 });
const applications = root.openDB<Application, string>("applications", {});
const sessions = root.openDB<Session, string>("sessions", {});
const log = root.openDB<Entry, string>("log", {});
/** Applications by creator, sessions by application, entries by target. */
const index = root.openDB<null, [string, string]>("index", {});

for (const application of createApplications(APPLICATION, Number(APPLICATIONS))) {
  applications.put(application.id, application);
}
await root.flushed;

function putEntry(entry: Entry): Promise<unknown> {
  log.put(entry.id, entry);
  return index.put([entry.target, entry.id], null);
}

serve({
  findApplication: (id) => applications.get(id),
  findSession: (id) => sessions.get(id),
  // Puts of one turn of the event loop share a transaction.
  addApplication(application, createEntry) {
    applications.put(application.id, application);
    index.put([application.created_by, application.id], null);
    return putEntry(createEntry());
  },
  addSession(session, createEntry) {
    sessions.put(session.id, session);
    index.put([session.application_id, session.id], null);
    return putEntry(createEntry());
  },
  authorizeSession: (session, createEntry) =>
    root.transaction(() => {
      if (sessions.get(session.id)?.authorized_at !== undefined) {
        return false;
      }
      sessions.put(session.id, session);
      putEntry(createEntry());
      return true;
    }),
});
