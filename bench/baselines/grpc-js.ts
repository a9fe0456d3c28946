/** `@grpc/grpc-js` at its cheapest: it answers each call with bytes that it knows beforehand. */
import {
  type handleUnaryCall,
  type MethodDefinition,
  Server,
  ServerCredentials,
} from "@grpc/grpc-js";

const { PORT, HOST, ANSWERS = "{}" } = process.env;
const asBytes = (bytes: Buffer) => bytes;

function unary(path: string): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  };
}

function answerWith(bytes: Buffer): handleUnaryCall<Buffer, Buffer> {
  return (_call, callback) => callback(null, bytes);
}

const server = new Server();
for (const [path, answer] of Object.entries(JSON.parse(ANSWERS) as Record<string, string>)) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  server.addService({ [name]: unary(path) }, { [name]: answerWith(Buffer.from(answer, "base64")) });
}
server.bindAsync(`${HOST}:${PORT}`, ServerCredentials.createInsecure(), (error) => {
  if (error) {
    throw error;
  }
});
