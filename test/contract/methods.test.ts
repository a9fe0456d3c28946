import { readFileSync } from "node:fs";
import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { Edition } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, it } from "@jest/globals";
import { http } from "../../gen/google/api/annotations_pb.js";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { CheckAccessRequestSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { EventSchema, EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { KeyService } from "../../gen/latchkey/v1/key_service_pb.js";
import { access, CallerType } from "../../gen/latchkey/v1/options_pb.js";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { choicesOf, validationRules } from "../../src/contract/fields.js";
import { gatewayKeyHeader } from "../../src/contract/headers.js";
import {
  accessOf,
  isOwnPermission,
  isUnauthenticated,
  mayHold,
  otherPermissions,
  ownPermissions,
  services,
} from "../../src/contract/methods.js";
import { newId } from "../../src/lib/uuid.js";
import { readBindings } from "../../src/transport/rest/bindings.js";
import { createDecoder } from "../../src/transport/rest/decode.js";
import { createEncoder } from "../../src/transport/rest/encode.js";

const methods = services.flatMap((service) => service.methods);

describe("the contract", () => {
  it.each(methods.map((method) => [method.name, method] as const))(
    "declares the access of %s, and a REST path unless it streams",
    (_name, method) => {
      expect(hasOption(method, access)).toBe(true);
      expect(() => accessOf(method)).not.toThrow();
      expect(readBindings(method).length > 0).toBe(method.methodKind === "unary");
    },
  );

  it("restricts every method except WhoAmI and ListPermissions by permission or by type of key", () => {
    const unrestricted = methods.filter((method) => {
      const { permission, callers, unauthenticated } = accessOf(method);
      return permission === "" && callers.length === 0 && !unauthenticated;
    });
    expect(unrestricted.map(({ name }) => name)).toEqual(["WhoAmI", "ListPermissions"]);
  });

  it("names packages for Go and Java, in a syntax that every generator reads", () => {
    const files = new Set(services.map(({ file }) => file));
    for (const { dependencies } of files) {
      for (const file of dependencies) {
        files.add(file);
      }
    }
    const declared = [...files].filter(({ proto }) => proto.package !== "google.protobuf");
    expect(declared.map(({ name }) => name)).toContain("latchkey/v1/rules");
    for (const { edition, proto } of declared) {
      expect([Edition.EDITION_PROTO2, Edition.EDITION_PROTO3]).toContain(edition);
      const { goPackage, javaPackage, javaMultipleFiles } = proto.options ?? {};
      expect(goPackage).toContain("/");
      expect(javaPackage).toContain(proto.package);
      expect(javaMultipleFiles).toBe(true);
    }
  });

  it("needs no key for KeyService alone", () => {
    const unauthenticated = services.filter(isUnauthenticated);
    expect(unauthenticated.map(({ name }) => name)).toEqual(["KeyService"]);
    for (const { permission, callers } of KeyService.methods.map(accessOf)) {
      expect([permission, callers]).toEqual(["", []]);
    }
  });

  it("refuses to start with a service that mixes methods with and without a key", () => {
    const mixed = { ...KeyService, methods: [...KeyService.methods, ...EventService.methods] };
    expect(() => isUnauthenticated(mixed as DescService)).toThrow(
      "latchkey.v1.KeyService mixes methods with and without a key",
    );
  });

  it("refuses to start with a method without an access option", () => {
    expect(() => accessOf(Health.method.check)).toThrow(
      "grpc.health.v1.Health.Check has no option (access)",
    );
  });

  it("refuses to start with an unsupported field type", () => {
    const [request] = methods.map(({ input }) => input);
    const unsupported = { ...(request as DescMessage), fields: [getEnumField()] };
    expect(() => createDecoder(unsupported, [], true)).toThrow("a type that REST does not support");
    expect(() => createEncoder(unsupported)).toThrow("a type that REST does not support");
  });

  it("returns a message of its own from every method, which can get fields later", () => {
    const packages = methods.map(({ name, output }) => [name, output.file.proto.package]);
    const raw = ["ReportLeakedKeys", "google.api"];
    expect(packages.filter(([, name]) => name !== "latchkey.v1")).toEqual([raw]);
  });

  it("binds each verb and path to one method", () => {
    const bindings = methods.flatMap(readBindings);
    const routes = bindings.map(({ verb, segments }) => JSON.stringify([verb, segments]));
    expect(new Set(routes).size).toBe(bindings.length);
  });
});

describe("the permissions of this service", () => {
  it("are declared once each, with a description", () => {
    expect(ownPermissions.map(({ name }) => name)).toEqual([
      "application:create",
      "application:read",
      "application:update",
      "application:delete",
      "session:read",
      "session:delete",
      "access:check",
      "event:read",
    ]);
    expect(ownPermissions.every(({ allows }) => allows.endsWith("."))).toBe(true);
  });

  it("cannot be held by public applications if they change applications or read keys, sessions or events", () => {
    const withheld = ownPermissions.filter(({ name }) => !mayHold("public", name));
    expect(withheld.map(({ name }) => name)).toEqual([
      "application:create",
      "application:update",
      "application:delete",
      "session:read",
      "session:delete",
      "access:check",
      "event:read",
    ]);
    for (const { name } of withheld) {
      expect(mayHold("private", name) && mayHold("management", name)).toBe(true);
    }
  });

  it("cannot be held by sessions if they change applications", () => {
    const withheld = ownPermissions.filter(({ name }) => !mayHold("session", name));
    expect(withheld.map(({ name }) => name)).toEqual([
      "application:create",
      "application:update",
      "application:delete",
    ]);
  });

  it("include undefined names in their namespace", () => {
    expect(isOwnPermission("application:purge")).toBe(true);
    expect(isOwnPermission("application:read:all")).toBe(true);
    expect(isOwnPermission("access:grant")).toBe(true);
    expect(isOwnPermission("applications:read")).toBe(false);
    expect(isOwnPermission("token:read")).toBe(false);
  });

  it("exclude the listed permissions of other services, which every type may hold", () => {
    const names = otherPermissions.map(({ name }) => name);
    expect(names).toEqual(["token:create", "token:read", "token:use"]);
    expect(names.filter(isOwnPermission)).toEqual([]);
    expect(otherPermissions.every(({ allows }) => allows.endsWith("."))).toBe(true);
    expect(names.every((name) => mayHold("public", name))).toBe(true);
  });
});

describe("the format of a subject's key", () => {
  const validator = createValidator({ registry: validationRules });
  const isAccepted = (key: string) => {
    const request = create(CheckAccessRequestSchema, {
      principal: { case: "key", value: key },
      permission: "token:read",
    });
    return validator.validate(CheckAccessRequestSchema, request).kind === "valid";
  };

  it.each(["prv", "pub", "mgt", "ses"] as const)("matches keys of type %s", (type) => {
    for (let i = 0; i < 20; i++) {
      expect(isAccepted(generateKey(type, newId(Date.now())))).toBe(true);
    }
  });

  it("does not match a nonce or a key of another length", () => {
    const key = generateKey("prv", newId(0));
    const invalid = [
      generateKey("non", newId(0)),
      key.slice(0, -1),
      `${key}0`,
      ` ${key}`,
      `${key}\n`,
      key.replace("prv", "PRV"),
      "",
    ];
    expect(invalid.filter(isAccepted)).toEqual([]);
  });

  it("matches imported keys", () => {
    const keyring = createKeyring([""], { importedKeys: true });
    const texts = ["a".repeat(15), "a".repeat(16), "a".repeat(200), "a".repeat(201)];
    const edgeCases = [`lk_${"a".repeat(20)}`, `${"a".repeat(20)} b`, `LK_${"~!".repeat(20)}`];
    for (const text of [...texts, ...edgeCases]) {
      expect(isAccepted(text)).toBe(keyring.acceptsImported(text));
    }
  });
});

/** Returns an enum field, which REST messages do not support. */
function getEnumField(): DescField {
  const registry = createRegistry(Health.file);
  const response = registry.getMessage("grpc.health.v1.HealthCheckResponse");
  return response?.fields[0] as DescField;
}

describe("the methods of gateways", () => {
  it("carry the key of the gateway in one header, which pages mask", () => {
    const headers = methods.map((method) => accessOf(method).keyHeader).filter(Boolean);
    expect([...new Set(headers)]).toEqual([gatewayKeyHeader]);
  });
});

describe("docs/reference/api.md", () => {
  it("lists every method with its path and its permission, and no other", () => {
    const page = readFileSync("docs/reference/api.md", "utf8");
    const rows = page.matchAll(
      /^\| (–|`[A-Z]+ \/\S*`)(?:, `PATCH \S+`)? \| \[?([A-Z]\w+)(?:\]\S+)? \| ([^|]+) \|/gm,
    );
    const documented = [...rows].map(([, path, name, required]) => [name, path, required]);
    const expected = methods.map((method) => {
      const { permission, callers, unauthenticated, ownSession } = accessOf(method);
      const { pattern } = getOption(method, http);
      const callerTypes = callers
        .map((type) => `a ${CallerType[type]?.toLowerCase()} key`)
        .join(", ");
      return [
        method.name,
        pattern.case ? `\`${pattern.case.toUpperCase()} ${pattern.value}\`` : "–",
        permission === ""
          ? callerTypes || (unauthenticated ? "no key" : "any valid key")
          : `\`${permission}\`${ownSession === "" ? "" : "; the session's own key"}`,
      ];
    });
    expect(documented.sort()).toEqual(expected.sort());
  });
});

describe("docs/reference/events.md", () => {
  it("lists every kind of event, and no other", () => {
    const page = readFileSync("docs/reference/events.md", "utf8");
    const cells = [...page.matchAll(/^\| ((?:`\w+\.\w+`(?:, )?)+) \|/gm)];
    const documented = cells.flatMap(([, cell = ""]) => cell.match(/[\w.]+/g) ?? []);
    expect(documented.sort()).toEqual([...choicesOf(EventSchema.field.kind)].sort());
  });
});
