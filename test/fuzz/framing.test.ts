import { describe, it } from "@jest/globals";
import { parseAnswers } from "../support/http.js";
import { inLanes } from "../support/in-lanes.js";
import { openRaw, staysOpen } from "../support/raw-connection.js";
import { type FramedInput, framedInputs } from "./framing-inputs.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { createFindings, seed, seeded } from "./seeded.js";

const server = useFuzzedServer();

const connections = 24;
const patience = 20_000;
/** How long the server may think before its caller hangs up. */
const pause = 40;

interface FramedAnswer {
  readonly text: string;
  readonly isLate: boolean;
}

/** Sends bytes, and answers with all that comes back until the server closes the connection. */
async function converse(bytes: string): Promise<FramedAnswer> {
  const connection = openRaw(server.port);
  const { socket } = connection;
  const hangUp = setTimeout(() => socket.end(), pause);
  socket.on("data", () => hangUp.refresh());
  connection.write(Buffer.from(bytes, "latin1"));
  const isLate = await staysOpen(connection, patience);
  clearTimeout(hangUp);
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
