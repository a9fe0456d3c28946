import { forEachConcurrently } from "../support/concurrency.js";
import { parseResponses } from "../support/http/http.js";
import { openRaw } from "../support/http/raw-connection.js";
import { type FramedInput, framedInputs } from "./framing-inputs.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { connections, say } from "./say.js";
import { createFindings, seeded } from "./seeded.js";

interface FramedAnswer {
  readonly text: string;
  readonly isLate: boolean;
}

/** Sends bytes, and answers with all that comes back until the server closes the connection. */
async function converse(server: FuzzedServer, bytes: string): Promise<FramedAnswer> {
  const connection = openRaw(server.port);
  const isLate = await say(connection, Buffer.from(bytes, "latin1"), {
    hear: (_chunk, hangUp) => hangUp.refresh(),
  });
  return { text: connection.received().toString("latin1"), isLate };
}

function isAsItShouldBe({ holdsTwo }: FramedInput, { text, isLate }: FramedAnswer): boolean {
  const answers = parseResponses(text);
  const served = answers.filter(({ status }) => status === 200);
  return (
    !isLate && answers.every(({ status }) => status < 500) && served.length <= (holdsTwo ? 1 : 0)
  );
}

/** Sends so many requests whose end can be mistaken, and expects that none lets in another one that hides in it. */
export async function sendFramed(server: FuzzedServer, count: number): Promise<void> {
  const findings = createFindings();
  const inputs = seeded(framedInputs(server.attacker.management), count);
  const send = async (input: FramedInput) => {
    const answer = await converse(server, input.text);
    if (!isAsItShouldBe(input, answer)) {
      findings.add(input, answer);
    }
  };
  await forEachConcurrently(connections, inputs, send, () => findings.isFull);
  findings.expectNone();
}
