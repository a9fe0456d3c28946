/** `@grpc/grpc-js` with constant messages and without serialization. */
import {
  type handleUnaryCall,
  type MethodDefinition,
  Server,
  ServerCredentials,
} from "@grpc/grpc-js";

const { PORT, HOST, RESPONSES = "{}" } = process.env;
const passThrough = (bytes: Buffer) => bytes;

function unary(path: string): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: passThrough,
    requestDeserialize: passThrough,
    responseSerialize: passThrough,
    responseDeserialize: passThrough,
  };
}

function respondWith(bytes: Buffer): handleUnaryCall<Buffer, Buffer> {
  return (_call, callback) => callback(null, bytes);
}

const server = new Server();
for (const [path, message] of Object.entries(JSON.parse(RESPONSES) as Record<string, string>)) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  server.addService(
    { [name]: unary(path) },
    { [name]: respondWith(Buffer.from(message, "base64")) },
  );
}
server.bindAsync(`${HOST}:${PORT}`, ServerCredentials.createInsecure(), (error) => {
  if (error) {
    throw error;
  }
});
