export const demoPrefix = "Demo ";

/** The names of the temporary applications of the guided demo. */
export const demoNames = {
  shop: `${demoPrefix}shop (temporary)`,
  backend: `${demoPrefix}backend (temporary)`,
} as const;
