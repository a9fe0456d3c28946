import { describe, it } from "@jest/globals";
import { parseAnswers } from "../support/http.js";
import { inLanes } from "../support/in-lanes.js";
import { openRaw } from "../support/raw-connection.js";
import { type FramedInput, framedInputs } from "./framing-inputs.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { connections, say } from "./say.js";
import { createFindings, seed, seeded } from "./seeded.js";

const server = useFuzzedServer();

interface FramedAnswer {
  readonly text: string;
  readonly isLate: boolean;
}

/** Sends bytes, and answers with all that comes back until the server closes the connection. */
async function converse(bytes: string): Promise<FramedAnswer> {
  const connection = openRaw(server.port);
  const isLate = await say(connection, Buffer.from(bytes, "latin1"), {
    hear: (_chunk, hangUp) => hangUp.refresh(),
  });
  return { text: connection.received().toString("latin1"), isLate };
}

function isAsItShouldBe({ holdsTwo }: FramedInput, { text, isLate }: FramedAnswer): boolean {
  const answers = parseAnswers(text);
  const served = answers.filter(({ status }) => status === 200);
  return (
    !isLate && answers.every(({ status }) => status < 500) && served.length <= (holdsTwo ? 1 : 0)
  );
}

describe(`requests at random whose end can be mistaken (FUZZ_SEED=${seed})`, () => {
  it("never let in another one that hides in them", async () => {
    const findings = createFindings();
    const inputs = seeded(framedInputs(server.attacker.management), 6_000);
    const send = async (input: FramedInput) => {
      const answer = await converse(input.text);
      if (!isAsItShouldBe(input, answer)) {
        findings.add(input, answer);
      }
    };
    await inLanes(connections, inputs, send, () => findings.isFull);
    findings.expectNone();
  }, 240_000);
});
