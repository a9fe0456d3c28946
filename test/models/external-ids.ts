import type { Model } from "./checker.js";

/**
 * External ids are unique among the live applications of a tenant. Who sets one claims the value first, in a document of
 * its own. Whoever finds a foreign claim looks at its owner: if the owner has the value, it is taken. If not, the owner may
 * be about to write it, so a fence (a new version, or a tombstone) makes that write fail before the claim is taken over.
 */
interface State {
  applications: Application[];
  claims: Record<string, number>;
  actors: Actor[];
  made: number[];
  /** The actor whose reply is stored for the one idempotency key, or -1. */
  reply: number;
  hasTimePassed: boolean;
  crashes: number;
  refused: boolean;
}

interface Application {
  is: "absent" | "live" | "tombstone";
  value: string;
  expires: boolean;
}

interface Actor {
  is:
    | "reading"
    | "looking up"
    | "deciding"
    | "claiming"
    | "looking"
    | "fencing"
    | "taking over"
    | "refusing"
    | "writing"
    | "done"
    | "refused";
  /** The own application has the version that was read. */
  isCurrent: boolean;
  wasAbsent: boolean;
  value: string;
  owner: number;
  /** The claim has the token that was read. */
  isSameClaim: boolean;
}

export interface Operation {
  readonly kind: "create" | "rename" | "update" | "extend" | "delete";
  readonly application: number;
  readonly value?: string;
  /** It has the idempotency key that all such operations share. */
  readonly hasKey?: boolean;
  /** An extension of an application that may have expired. */
  readonly evenIfExpired?: boolean;
}

export type ExternalIdBug =
  | "no fence"
  | "does not look again after the fence"
  | "takes over whatever the token of the claim"
  | "reads its own version after the claim"
  | "extends an expired application without a claim"
  | "removes tombstones early"
  | "removes claims whose owner lacks the value"
  | "refuses without reading its own application again";

export interface ExternalIdOptions {
  readonly applications: readonly Partial<Application>[];
  readonly operations: readonly Operation[];
  readonly canExpire?: boolean;
  readonly crashes?: number;
  readonly bug?: ExternalIdBug;
}

export function externalIds({
  applications,
  operations,
  canExpire = false,
  crashes = 1,
  bug,
}: ExternalIdOptions): Model<State> {
  const newActor = (is: Actor["is"] = "reading"): Actor => ({
    is,
    isCurrent: false,
    wasAbsent: false,
    value: "",
    owner: -1,
    isSameClaim: false,
  });
  const values = [
    ...new Set([...applications, ...operations].flatMap(({ value }) => value ?? [])),
  ].sort();
  const isLive = (state: State, { is, expires }: Application) =>
    is === "live" && !(expires && state.hasTimePassed);
  const isOver = ({ is }: Actor) => is === "done" || is === "refused";
  const ownOf = (state: State, index: number) =>
    state.applications[operations[index]?.application as number] as Application;
  const holders = (state: State, value: string) =>
    state.applications.filter((one) => one.value === value && isLive(state, one));

  function changed(state: State, application: number): void {
    for (const [index, actor] of state.actors.entries()) {
      actor.isCurrent &&= operations[index]?.application !== application;
    }
  }

  /** A claim gets a new token whenever it is written. */
  function claim(state: State, value: string, owner: number): void {
    state.claims[value] = owner;
    for (const actor of state.actors) {
      actor.isSameClaim &&= actor.value !== value;
    }
  }

  function end(state: State, index: number, is: "done" | "refused"): void {
    const isOwnChange =
      operations[index]?.hasKey &&
      operations.some(({ hasKey }, other) => hasKey && state.made[other]);
    state.refused ||= is === "refused" && isOwnChange === true;
    state.actors[index] = newActor(is);
  }

  return {
    initial: {
      applications: applications.map(({ is = "absent", value = "", expires = false }) => ({
        is,
        value,
        expires,
      })),
      claims: Object.fromEntries(
        values.map((value) => [value, applications.findIndex((one) => one.value === value)]),
      ),
      actors: operations.map(() => newActor()),
      made: operations.map(() => 0),
      reply: -1,
      hasTimePassed: !canExpire,
      crashes,
      refused: false,
    },
    next(state, step) {
      operations.forEach((operation, index) => {
        const { kind, application, hasKey = false, evenIfExpired = false } = operation;
        const actor = state.actors[index] as Actor;
        const { value } = actor;
        const name = `${kind} ${application}${operation.value ? ` ${operation.value}` : ""} (${index})`;
        const at = (label: string, act: (copy: State, mine: Actor, own: Application) => unknown) =>
          step(`${name}: ${label}`, (copy) =>
            act(copy, copy.actors[index] as Actor, ownOf(copy, index)),
          );
        const startOver = (copy: State) => {
          copy.actors[index] = newActor();
        };
        /** The owner has the value: it is taken, unless by an earlier attempt of this operation. */
        const look = (copy: State, mine: Actor, next: Actor["is"]) => {
          const owner = copy.applications[mine.owner] as Application;
          mine.is = isLive(copy, owner) && owner.value === value ? "refusing" : next;
        };

        if (actor.is !== "reading" && !isOver(actor) && state.crashes > 0) {
          at("CRASH", (copy) => {
            copy.crashes--;
            copy.actors[index] = newActor("done");
          });
        }
        switch (actor.is) {
          case "reading":
            at("reads its application", (_, mine, own) => {
              const claimed =
                kind === "extend" && bug !== "extends an expired application without a claim"
                  ? own.value
                  : operation.value;
              Object.assign(mine, {
                is: hasKey ? "looking up" : "deciding",
                isCurrent: true,
                wasAbsent: own.is === "absent",
                value: claimed ?? "",
              });
            });
            break;
          case "looking up":
            at("looks up the response", (copy, mine) => {
              if (copy.reply >= 0) {
                return end(copy, index, "done");
              }
              mine.is = "deciding";
            });
            break;
          case "deciding":
            at("decides", (copy, mine, own) => {
              if (!mine.isCurrent) {
                return startOver(copy);
              }
              const isPossible =
                kind === "create"
                  ? own.is !== "live"
                  : own.is === "live" && (evenIfExpired || isLive(copy, own));
              if (!isPossible || (kind === "rename" && own.value === value)) {
                return end(copy, index, "refused");
              }
              mine.is = value === "" ? "writing" : "claiming";
            });
            break;
          case "claiming":
            at(`claims ${value}`, (copy, mine) => {
              const owner = copy.claims[value] as number;
              if (owner >= 0 && owner !== application) {
                Object.assign(mine, { is: "looking", owner, isSameClaim: true });
                return;
              }
              if (owner < 0 || bug !== "takes over whatever the token of the claim") {
                claim(copy, value, application);
              }
              mine.is = "writing";
            });
            break;
          case "looking":
            at(`looks at owner ${actor.owner}`, (copy, mine) =>
              look(copy, mine, bug === "no fence" ? "taking over" : "fencing"),
            );
            break;
          case "fencing":
            at(`fences owner ${actor.owner}`, (copy, mine) => {
              const owner = copy.applications[mine.owner] as Application;
              owner.is = owner.is === "absent" ? "tombstone" : owner.is;
              changed(copy, mine.owner);
              if (bug === "does not look again after the fence") {
                mine.is = "taking over";
              } else {
                look(copy, mine, "taking over");
              }
            });
            break;
          case "taking over":
            at(`takes ${value} over from ${actor.owner}`, (copy, mine) => {
              const isSame =
                mine.isSameClaim ||
                (bug === "takes over whatever the token of the claim" &&
                  copy.claims[value] === mine.owner);
              if (isSame) {
                claim(copy, value, application);
              }
              Object.assign(mine, {
                is: isSame ? "writing" : "claiming",
                owner: -1,
                isSameClaim: false,
              });
            });
            break;
          case "refusing":
            at("reads its application again", (copy, mine) => {
              if (!mine.isCurrent && bug !== "refuses without reading its own application again") {
                return startOver(copy);
              }
              end(copy, index, "refused");
            });
            break;
          case "writing":
            at("conditional write", (copy, mine, own) => {
              const readLate = bug === "reads its own version after the claim";
              // An insert is stopped by a document with its id, an update by the version.
              const canWrite = mine.wasAbsent
                ? own.is === "absent"
                : mine.isCurrent || (readLate && (own.is === "live") === (kind !== "create"));
              if (!canWrite) {
                return startOver(copy);
              }
              own.is = kind === "delete" ? "tombstone" : "live";
              own.value = kind === "delete" ? "" : (operation.value ?? own.value);
              own.expires &&= kind === "update" || kind === "rename";
              changed(copy, application);
              (copy.made[index] as number)++;
              copy.reply = hasKey ? index : copy.reply;
              end(copy, index, "done");
            });
        }
      });

      if (!state.hasTimePassed) {
        step("applications with an expiry expire", (copy) => {
          copy.hasTimePassed = true;
        });
      }
      state.applications.forEach(({ is }, application) => {
        const isInUse = state.actors.some(
          (actor, index) =>
            operations[index]?.application === application &&
            !isOver(actor) &&
            actor.is !== "reading",
        );
        if (is === "tombstone" && (!isInUse || bug === "removes tombstones early")) {
          step(`the tombstone of ${application} is removed`, (copy) => {
            copy.applications[application] = { is: "absent", value: "", expires: false };
            changed(copy, application);
          });
        }
      });
      if (bug === "removes claims whose owner lacks the value") {
        for (const value of values) {
          const owner = state.applications[state.claims[value] as number];
          if (owner && !(isLive(state, owner) && owner.value === value)) {
            step(`the claim of ${value} is removed`, (copy) => claim(copy, value, -1));
          }
        }
      }
    },
    invariants: {
      oneOwner: (state) =>
        values.every((value) => holders(state, value).length < 2) ||
        JSON.stringify(state.applications),
      oneEffect: ({ made }) =>
        made.filter((count, index) => count > 0 && operations[index]?.hasKey).length < 2 ||
        `${made}`,
      notRefusedForOwnChange: ({ refused }) =>
        !refused || "a retry was refused because of its earlier attempt",
    },
    reachable: {
      everyOperationEnds: { to: ({ actors }) => actors.every(isOver) },
    },
  };
}
