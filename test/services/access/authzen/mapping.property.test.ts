import { create } from "@bufbuild/protobuf";
import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { EvaluateRequestSchema } from "../../../../gen/latchkey/v1/authzen_service_pb.js";
import { toActionName, toCheck } from "../../../../src/services/access/authzen/mapping.js";

const segment = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/);

it("an action is named so that an evaluation checks the same permission", () => {
  fc.assert(
    fc.property(
      fc.array(segment, { minLength: 2, maxLength: 3 }),
      fc.nat({ max: 1 }),
      (segments, shorter) => {
        const permission = segments.join(":");
        const type = segments.slice(0, Math.max(1, segments.length - 1 - shorter)).join(":");
        const request = create(EvaluateRequestSchema, {
          subject: { type: "user", id: "alice" },
          action: { name: toActionName(permission, type) },
          resource: { type, id: "record-1" },
        });
        expect(toCheck(request).permission).toBe(permission);
      },
    ),
  );
});

it("each subject is checked by one field, whatever its type", () => {
  const type = fc.oneof(fc.constantFrom("application", "session", "api_key"), fc.string());
  fc.assert(
    fc.property(type, fc.string({ minLength: 1 }), (type, id) => {
      const request = create(EvaluateRequestSchema, {
        subject: { type, id },
        action: { name: "read" },
        resource: { type: "record", id: "record-1" },
      });
      const { principal } = toCheck(request);
      const cases = { application: "applicationId", session: "sessionId", api_key: "key" };
      const expected = Object.entries(cases).find(([name]) => name === type)?.[1] ?? "externalId";
      expect(principal).toEqual({ case: expected, value: id });
    }),
  );
});
