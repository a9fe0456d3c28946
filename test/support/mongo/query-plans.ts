import type { Db, Document } from "mongodb";

/** On a busy machine the profiler misses some commands. */
const maxAttempts = 10;

/** Runs work and returns its commands from the server's profiler. Repeats it if the profiler missed some. */
export async function profile(
  db: Db,
  work: () => Promise<unknown>,
  atLeast = 1,
): Promise<Document[]> {
  for (let attempt = 1; ; attempt++) {
    const commands = await profileOnce(db, work);
    if (commands.length >= atLeast || attempt === maxAttempts) {
      return commands;
    }
  }
}

async function profileOnce(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.setProfilingLevel("all");
  await work();
  await db.setProfilingLevel("off");
  const names = [
    "applications",
    "sessions",
    "events",
    "responses",
    "checkpoints",
    "external_id_claims",
  ];
  const ns = { $in: names.map((name) => `${db.databaseName}.${name}`) };
  const commands = await db.collection("system.profile").find({ ns }).toArray();
  await db.collection("system.profile").drop();
  return commands;
}

/** How MongoDB executes a command. */
export interface Plan {
  /** The command and its collection, such as `find applications`. */
  readonly command: string;
  /** The stages of its plans, each with the index that it reads, such as `IXSCAN {"_id":1}`. */
  readonly stages: readonly string[];
  readonly keysExamined: number;
  readonly docsExamined: number;
}

/** Runs work, then explains the plans of its commands. */
export async function explainPlans(
  db: Db,
  work: () => Promise<unknown>,
  atLeast = 1,
): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const entry of await profile(db, work, atLeast)) {
    if (entry.op === "insert") {
      // It reads nothing, and the server does not explain it.
      continue;
    }
    const command = toCommand(entry);
    const explained = await db.command({ explain: command, verbosity: "executionStats" });
    const parts = listPlans(explained);
    const sum = (field: string) =>
      parts.reduce((total, { executionStats }) => total + (executionStats?.[field] ?? 0), 0);
    const [kind = ""] = Object.keys(command);
    plans.push({
      command: `${kind} ${command[kind]}`,
      stages: parts.flatMap(listStages),
      keysExamined: sum("totalKeysExamined"),
      docsExamined: sum("totalDocsExamined"),
    });
  }
  return plans;
}

/** A profiled command without the fields of its original call. */
function toCommand({ op, ns, command }: Document): Document {
  const collection = ns.slice(ns.indexOf(".") + 1);
  if (op === "remove") {
    return { delete: collection, deletes: [command] };
  }
  if (op === "update") {
    return { update: collection, updates: [command] };
  }
  const { lsid, txnNumber, readConcern, writeConcern, maxTimeMS, ...rest } = command;
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("$")));
}

/** All plans of an explanation. A pipeline has one for each collection. */
function listPlans(explained: Document): Document[] {
  if (explained.queryPlanner) {
    return [explained];
  }
  return (explained.stages as Document[]).flatMap((stage) => {
    const [[name, fields] = ["", {}]] = Object.entries(stage);
    const pipeline: Document[] = fields.pipeline ?? [];
    return [
      { stage: name, ...fields },
      ...(pipeline.length > 0 ? listPlans({ stages: pipeline }) : []),
    ];
  });
}

/** The stages of a plan, or of a pipeline such as `$sort`. */
function listStages({ stage, queryPlanner }: Document): string[] {
  const plan = queryPlanner?.winningPlan;
  return plan ? listPlanStages(plan.queryPlan ?? plan) : [stage];
}

function listPlanStages({ stage, keyPattern, inputStage, inputStages = [] }: Document): string[] {
  const inputs: Document[] = inputStage ? [inputStage] : inputStages;
  const name = keyPattern ? `${stage} ${JSON.stringify(keyPattern)}` : stage;
  return [name, ...inputs.flatMap(listPlanStages)];
}
