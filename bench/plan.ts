/** How thoroughly everything is measured. */
export interface Plan {
  /** How many seconds each load is tried first: code that has not run a few thousand times is not compiled yet. */
  readonly warmUp: number;
  readonly rounds: number;
  /** How long each load of a round takes. */
  readonly seconds: number;
  /** How many keys are revoked in a row. */
  readonly revokes: number;
  /** How many are revoked with long pauses between them. */
  readonly lateRevokes: number;
  /** How many times each kind of check is repeated in a round. */
  readonly checks: { readonly local: number; readonly remote: number };
  /** The rounds of the part about rules, which has loads of its own. */
  readonly ruleRounds: number;
}

export const wholePlan: Plan = {
  warmUp: 2,
  rounds: 5,
  seconds: 2,
  revokes: 1_000,
  lateRevokes: 30,
  checks: { local: 100_000, remote: 2_000 },
  ruleRounds: 3,
};

export const quickPlan: Plan = {
  warmUp: 1,
  rounds: 1,
  seconds: 1,
  revokes: 100,
  lateRevokes: 5,
  checks: { local: 20_000, remote: 500 },
  ruleRounds: 1,
};
