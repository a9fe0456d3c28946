/** The service by hand on MongoDB: one plain call of the driver for each step, and no audit log. */
import { MongoClient, ReadConcern } from "mongodb";
import { type Application, createApplications, type Session, serve } from "./service.js";

type Document<T> = { readonly _id: string } & Omit<T, "id">;

const { MONGODB_URI = "", MONGODB_DATABASE, APPLICATION = "", APPLICATIONS } = process.env;
const client = await new MongoClient(MONGODB_URI, { promoteBuffers: true }).connect();
const database = client.db(MONGODB_DATABASE, {
  readConcern: new ReadConcern("majority"),
  writeConcern: { w: "majority", journal: true },
});
const applications = database.collection<Document<Application>>("applications");
const sessions = database.collection<Document<Session>>("sessions");
await applications.createIndex({ created_by: 1 });
await sessions.createIndex({ application_id: 1 });
await sessions.createIndex({ expires_at: 1 });
await applications.insertMany(
  createApplications(APPLICATION, Number(APPLICATIONS)).map(toDocument),
);

function toDocument<T extends { readonly id: string }>({ id, ...fields }: T) {
  return { _id: id, ...fields };
}

function fromDocument<T>(document: Document<T> | null): T | undefined {
  if (document === null) {
    return undefined;
  }
  const { _id, ...fields } = document;
  return { id: _id, ...fields } as T;
}

serve({
  findApplication: async (id) => fromDocument<Application>(await applications.findOne({ _id: id })),
  findSession: async (id) => fromDocument<Session>(await sessions.findOne({ _id: id })),
  addApplication: (application) => applications.insertOne(toDocument(application)),
  addSession: (session) => sessions.insertOne(toDocument(session)),
  async authorizeSession(session) {
    const { _id, ...fields } = toDocument(session);
    const unused = { _id, authorized_at: { $exists: false } };
    return (await sessions.updateOne(unused, { $set: fields })).modifiedCount === 1;
  },
});
