import type { FileFacts, FolderFacts } from "../../store/lmdb/inspect.js";
import { type Finding, fail, ok, warn } from "./finding.js";
import { checkManagers } from "./manager-checks.js";

const megabyte = 1024 * 1024;
/** Below the one the store may come to a stop soon, below the other today. */
const littleRoom = 1024 * megabyte;
const noRoom = 64 * megabyte;

/** Judges what was seen of the folder of an embedded store. */
export function checkFolder(facts: FolderFacts): Finding[] {
  const { path, isThere, isWritable, isShared, store } = facts;
  const findings = [folderFinding(facts)];
  if (isThere && isShared) {
    findings.push(warn("store", `${path} can be read by others`, `Close it: chmod 700 ${path}`));
  }
  if (store && isWritable) {
    findings.push(layoutFinding(store, path), ...checkManagers(store.managerEnds));
  }
  return [...findings, roomFinding(facts)];
}

function folderFinding({ path, isThere, isWritable, store }: FolderFacts): Finding {
  if (!isWritable) {
    return fail(
      "store",
      `${path} cannot be ${isThere ? "written" : "made"} by this user`,
      "Let DATA_DIR name a folder that this user may write, or give it to this user.",
    );
  }
  return store
    ? ok("store", `${path} holds ${Math.ceil(store.bytes / megabyte)} MB`)
    : warn(
        "store",
        `${path} holds no data yet`,
        "The service makes it with its first start. Where there should be data, let DATA_DIR name its folder.",
      );
}

function layoutFinding({ fault, schema, knownSchema }: FileFacts, path: string): Finding {
  if (fault !== undefined) {
    return fail(
      "layout",
      `${path}: ${fault}`,
      "Restore it from a backup, or choose another folder.",
    );
  }
  if (schema === undefined) {
    return ok("layout", "is looked at when the service starts");
  }
  if (schema > knownSchema) {
    return fail(
      "layout",
      `version ${schema} is of a newer Latchkey; this one knows ${knownSchema}`,
      "Run that version, or choose another folder.",
    );
  }
  return schema === knownSchema
    ? ok("layout", `version ${schema}, with all of its indexes`)
    : warn(
        "layout",
        `version ${schema} is of an earlier Latchkey`,
        `The next start brings it to ${knownSchema}: stop all processes of the earlier version first.`,
      );
}

function roomFinding({ freeBytes }: FolderFacts): Finding {
  const found = `${Math.floor(freeBytes / megabyte).toLocaleString("en-US")} MB are free`;
  const mend = "Make room on the disk of DATA_DIR: without it nothing can be written.";
  if (freeBytes < noRoom) {
    return fail("disk", found, mend);
  }
  return freeBytes < littleRoom ? warn("disk", found, mend) : ok("disk", found);
}
