/** The version of the package, as its package.json has it. */
export const version = "0.1.0";
