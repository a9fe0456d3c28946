import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { listOf } from "../call-request.js";
import type { HeaderList } from "../exchange.js";
import type { Protocol } from "./protocol.js";

const jsonType: HeaderList = ["content-type", "application/json"];

/** Connect with messages in binary. */
export const connectBinary = createConnect("binary", ["content-type", "application/proto"]);

/** Connect with messages in JSON. */
export const connectJson = createConnect("json", jsonType);

function createConnect(format: Protocol["format"], contentType: HeaderList): Protocol {
  return {
    name: "connect",
    overhead: 0,
    format,

    unwrap: (body) => body,

    answer(exchange, { headerList, trailerList }, codec, message) {
      const headers =
        headerList.length + trailerList.length === 0
          ? contentType
          : [...contentType, ...headerList, ...asHeaders(trailerList)];
      exchange.send(200, headers, codec.encode(message, 0));
    },

    refuse(exchange, { headerList, trailerList }, problem) {
      exchange.send(
        codeToHttpStatus(problem.code),
        [...jsonType, ...headerList, ...listOf(problem.metadata), ...asHeaders(trailerList)],
        errorToJsonBytes(problem, undefined),
      );
    },
  };
}

/** Trailers, as they go among the headers. */
function asHeaders(trailers: HeaderList): HeaderList {
  return trailers.map((text, at) => (at % 2 === 0 ? `trailer-${text}` : text));
}
