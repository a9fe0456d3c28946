import { connect } from "./connect.js";
import { limits, reach } from "./reach.js";
import { applicationsName } from "./schema.js";

/** Whether a database holds a store, whatever its schema; to find out makes nothing in it. */
export async function holdsStore(uri: string, database: string): Promise<boolean> {
  const { client } = await connect(uri, "majority");
  try {
    const named = { name: applicationsName };
    const collections = client.db(database).listCollections(named, { nameOnly: true, ...limits });
    return (await reach(() => collections.toArray())).length > 0;
  } finally {
    await client.close();
  }
}
