import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { asBuffer } from "../../../lib/bytes.js";
import type { HeaderList } from "../../http/headers.js";
import { toHeaderList } from "../call.js";
import type { Protocol } from "./protocol.js";
import { envelopeSize } from "./protocol.js";

const jsonType: HeaderList = ["content-type", "application/json"];

/** Connect with binary messages, without envelopes. */
export const connectBinary = createConnect(
  "binary",
  ["content-type", "application/proto"],
  (message) => message.subarray(envelopeSize),
);

/** Connect with JSON messages. */
export const connectJson = createConnect("json", jsonType, (message) => message);

function createConnect(
  format: Protocol["format"],
  contentType: HeaderList,
  bodyOf: (message: Buffer) => Buffer,
): Protocol {
  return {
    name: "connect",
    overhead: 0,
    format,

    unwrap: (body) => body,

    respond(exchange, { headerList, trailerList }, codec, message) {
      const headers =
        headerList.length + trailerList.length === 0
          ? contentType
          : [...contentType, ...headerList, ...asHeaders(trailerList)];
      exchange.send(200, headers, bodyOf(codec.encode(message)));
    },

    respondWithError(exchange, { headerList, trailerList }, problem) {
      exchange.send(
        codeToHttpStatus(problem.code),
        [...jsonType, ...headerList, ...toHeaderList(problem.metadata), ...asHeaders(trailerList)],
        asBuffer(errorToJsonBytes(problem, undefined)),
      );
    },
  };
}

/** Connect sends trailers as headers with a prefix. */
function asHeaders(trailers: HeaderList): HeaderList {
  return trailers.map((text, index) => (index % 2 === 0 ? `trailer-${text}` : text));
}
