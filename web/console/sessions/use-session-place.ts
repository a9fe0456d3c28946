import { useSearchParams } from "wouter";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";

export const states = choicesOf(ListSessionsRequestSchema.field.state);

const names = ["application", "authorizer", "state", "session"] as const;
type Place = Readonly<Record<(typeof names)[number], string>>;

/** Which sessions are listed, and which one is open, as the address of the page says. */
export function useSessionPlace(): readonly [Place, (changed: Partial<Place>) => void] {
  const [parameters, setParameters] = useSearchParams();
  const place = Object.fromEntries(
    names.map((name) => [name, parameters.get(name) ?? ""]),
  ) as Place;
  function change(changed: Partial<Place>): void {
    const next = Object.entries({ ...place, ...changed }).filter(([, value]) => value !== "");
    setParameters(Object.fromEntries(next), { replace: true });
  }
  return [{ ...place, state: states.includes(place.state) ? place.state : "" }, change];
}
