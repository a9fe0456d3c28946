const asyncHooks = require("node:async_hooks");
const { ModernFakeTimers } = require("@jest/fake-timers");
const { ModuleMocker } = require("jest-mock");

const storages = new Set();

/**
 * jest-circus creates one for each test file and never disables it. Before Node 24, every promise
 * copies the store of each: after 80 files, a promise took 25 times as long.
 */
asyncHooks.AsyncLocalStorage = class extends asyncHooks.AsyncLocalStorage {
  constructor(...options) {
    super(...options);
    storages.add(this);
  }
};

/**
 * Runs the tests in the worker's own context. In the context that jest creates by default, every
 * use of a global such as Buffer or Date is a slow call, and nothing can be shared between files.
 */
module.exports = class MainContextEnvironment {
  global = globalThis;

  constructor({ projectConfig }) {
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup() {
    // jest sets 100, which makes errors expensive, and each `expect` creates one.
    Error.stackTraceLimit = 20;
  }

  async teardown() {
    this.fakeTimersModern.dispose();
    for (const storage of storages) {
      storage.disable();
    }
    storages.clear();
    // jest-circus keeps its state and handlers in the globals, and would reuse them.
    for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
      if (["JEST_STATE_SYMBOL", "EVENT_HANDLERS"].includes(symbol.description)) {
        delete globalThis[symbol];
      }
    }
  }

  exportConditions() {
    return ["node", "node-addons"];
  }

  getVmContext() {
    return globalThis;
  }
};
