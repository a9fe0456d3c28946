import { useLmdbFolder } from "../../support/lmdb/folder.js";
import type { OpenStore } from "./subject.js";
import { describeStore, describeStoreWide } from "./suite.js";

const folder = useLmdbFolder();

// Opening a folder is fast, so each test has its own.
const open: OpenStore = async (clock) => ({
  store: await folder.open({ clock }),
  another: () => folder.open({ clock }),
  reopen: () => folder.open({ clock }),
  sweep: () => folder.open({ clock, sweepInterval: 5 }),
  async release() {},
});

describeStore("LMDB", open);
describeStoreWide("LMDB", open);
