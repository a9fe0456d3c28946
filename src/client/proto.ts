/** The generated code of the API, for other clients: `latchkey/proto`. */
export * from "../../gen/latchkey/v1/access_rule_pb.js";
export * from "../../gen/latchkey/v1/access_service_pb.js";
export * from "../../gen/latchkey/v1/application_service_pb.js";
export * from "../../gen/latchkey/v1/authzen_service_pb.js";
export * from "../../gen/latchkey/v1/event_service_pb.js";
export * from "../../gen/latchkey/v1/gateway_service_pb.js";
export * from "../../gen/latchkey/v1/introspection_service_pb.js";
export * from "../../gen/latchkey/v1/key_service_pb.js";
export * from "../../gen/latchkey/v1/overview_service_pb.js";
export * from "../../gen/latchkey/v1/session_service_pb.js";
