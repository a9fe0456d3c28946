import { createRegistry, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { CallerKind } from "../gen/latchkey/v1/options_pb.js";
import { accessOf, isOwnPermission, mayHold, ownPermissions, services } from "../src/contract.js";
import { readBinding } from "../src/server/rest/binding.js";
import { createDecoder } from "../src/server/rest/decode.js";
import { createEncoder } from "../src/server/rest/encode.js";

const methods = services.flatMap((service) => service.methods);

describe("the contract", () => {
  it.each(methods.map((method) => [method.name, method] as const))(
    "says of %s who may call it and where REST finds it",
    (_name, method) => {
      const access = accessOf(method);
      expect(access.permission !== "" || access.callers.length > 0).toBe(true);
      expect(readBinding(method)).toBeDefined();
    },
  );

  it("stops a server whose method does not say who may call it", () => {
    expect(() => accessOf(Health.method.check)).toThrow(
      "grpc.health.v1.Health.Check does not say who may call it",
    );
  });

  it("stops a server that cannot read or write a field of its requests", () => {
    const [request] = methods.map(({ input }) => input);
    const odd = { ...(request as DescMessage), fields: [oddField()] };
    expect(() => createDecoder(odd, [], true)).toThrow("a type that REST does not know");
    expect(() => createEncoder(odd)).toThrow("a type that REST does not know");
  });

  it("binds no two methods to one verb and path", () => {
    const bindings = methods.flatMap((method) => readBinding(method) ?? []);
    const places = bindings.map(({ verb, segments }) => JSON.stringify([verb, segments]));
    expect(new Set(places).size).toBe(methods.length);
  });
});

describe("the permissions of this service", () => {
  it("are declared once each, with what they allow", () => {
    expect(ownPermissions.map(({ name }) => name)).toEqual([
      "application:create",
      "application:read",
      "application:update",
      "application:delete",
    ]);
    expect(ownPermissions.every(({ allows }) => allows.endsWith("."))).toBe(true);
  });

  it("that change applications are not for public ones", () => {
    const closed = ownPermissions.filter(({ name }) => !mayHold("public", name));
    expect(closed.map(({ name }) => name)).toEqual([
      "application:create",
      "application:update",
      "application:delete",
    ]);
    for (const { holders } of closed) {
      expect(holders).toEqual([CallerKind.PRIVATE, CallerKind.MANAGEMENT]);
    }
  });

  it("include names in their namespace that mean nothing yet", () => {
    expect(isOwnPermission("application:purge")).toBe(true);
    expect(isOwnPermission("application:read:all")).toBe(true);
    expect(isOwnPermission("applications:read")).toBe(false);
    expect(isOwnPermission("token:read")).toBe(false);
  });
});

/** An enum, which no message of REST has. */
function oddField(): DescField {
  const registry = createRegistry(Health.file);
  const response = registry.getMessage("grpc.health.v1.HealthCheckResponse");
  return response?.fields[0] as DescField;
}
