import type { SealedPlaces, SealPlaces } from "./sealed-places.js";

/** What can be watched. */
type Feed = "credentials" | "events";

/** Creates the tokens of those who watch, to go on from where they were. */
export function createResumeTokens(sealPlaces: SealPlaces, feed: Feed): SealedPlaces {
  return sealPlaces({
    purpose: `resume token of ${feed}`,
    field: "resume_token",
    refusal:
      "is not one of this service and tenant, or was changed: " +
      "pass the resume_token of an earlier message, or none to watch from now",
    startAgain: "pass none to watch from now",
  });
}
