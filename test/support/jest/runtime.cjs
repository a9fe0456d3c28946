const { dirname, join, sep } = require("node:path");
const { compileFunction } = require("node:vm");
const { default: Runtime } = require("jest-runtime");

/** Compiles modules for the context of environment.cjs. */
class MainContextRuntime extends Runtime {
  constructor(...options) {
    super(...options);
    this.executor.compile = (source, filename) =>
      compileFunction(source, this.executor.injectedModuleParameters, { filename });
  }
}

let sharedRuntime;

/**
 * Loads src, gen and the packages once per worker, because they have no state that a test could
 * notice. Only the files in test/, and jest-circus with its list of tests, are loaded for each test file.
 */
module.exports = class SharingRuntime extends MainContextRuntime {
  #ownFolders;

  constructor(config, ...options) {
    super(config, ...options);
    const circus = dirname(require.resolve("jest-circus/package.json"));
    this.#ownFolders = [join(config.rootDir, "test"), circus].map((folder) => folder + sep);
    sharedRuntime ??= new MainContextRuntime(config, ...options);
    this.transformCache.sourceMaps = sharedRuntime.transformCache.sourceMaps;
  }

  requireModule(from, name, ...options) {
    return this.#isShared(from, name)
      ? sharedRuntime.requireModule(from, name, ...options)
      : super.requireModule(from, name, ...options);
  }

  #isShared(from, name) {
    if (name && this._resolution.isCoreModule(name)) {
      return false;
    }
    const path = this._resolution.resolveCjs(from, name);
    return !this.#ownFolders.some((folder) => path.startsWith(folder));
  }
};
