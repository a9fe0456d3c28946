/** Takes what a connection receives apart into answers of HTTP/1.1, of which one comes at a time. */
export interface AnswerReader {
  /** Adds what has come, and answers the whole answer once it is there. */
  add(part: Buffer): Answer | undefined;
}

export interface Answer {
  readonly status: number;
  /** As it came: where its parts have no length beforehand, those of the parts are in it. */
  readonly body: Buffer;
}

const headEnd = "\r\n\r\n";
const chunksEnd = "0\r\n\r\n";
const statusAt = "HTTP/1.1 ".length;

export function createAnswerReader(): AnswerReader {
  let received: Buffer | undefined;
  return {
    add(part) {
      const bytes = received ? Buffer.concat([received, part]) : part;
      const answer = readAnswer(bytes);
      received = answer ? undefined : bytes;
      return answer;
    },
  };
}

function readAnswer(bytes: Buffer): Answer | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0) {
    return undefined;
  }
  const head = bytes.toString("latin1", 0, end).toLowerCase();
  const status = Number(head.slice(statusAt, statusAt + 3));
  const body = bytes.subarray(end + headEnd.length);
  return isWhole(head, status, body) ? { status, body } : undefined;
}

function isWhole(head: string, status: number, body: Buffer): boolean {
  const lengthAt = head.indexOf("\r\ncontent-length:");
  if (lengthAt >= 0) {
    return body.length >= Number.parseInt(head.slice(lengthAt + "\r\ncontent-length:".length), 10);
  }
  if (head.includes("\r\ntransfer-encoding: chunked")) {
    return body.subarray(-chunksEnd.length).toString("latin1") === chunksEnd;
  }
  if (status === 204) {
    return true;
  }
  throw new Error(`an answer without a length: ${head}`);
}
