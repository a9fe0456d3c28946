/** The names of the temporary applications of the guided demo. */
export const demoNames = {
  shop: "Demo shop (temporary)",
  backend: "Demo backend (temporary)",
} as const;
