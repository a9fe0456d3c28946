/** The shells that there are scripts for. */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];
