import { createSealedPlaces, type SealedPlaces } from "./sealed-places.js";

/** What can be watched. */
type Feed = "credentials" | "events";

/** A secret of the data with an id which all instances know and no caller does. */
const secrets: Readonly<Record<Feed, (storeId: string) => string>> = {
  credentials: (storeId) => `latchkey resume token ${storeId}`,
  events: (storeId) => `latchkey event resume token ${storeId}`,
};

/** Creates the tokens of those who watch the data with this id, to go on from where they were. */
export function createResumeTokens(storeId: string, feed: Feed): SealedPlaces {
  return createSealedPlaces(secrets[feed](storeId), {
    field: "resume_token",
    message:
      "is not one of this service and tenant, or was changed: " +
      "pass the resume_token of an earlier message, or none to watch from now",
  });
}
