/** How the command line ends: what each exit code means, for scripts to rely on. */
export const exitCodes = {
  done: { code: 0, means: "done; of `check`: allowed" },
  failed: { code: 1, means: "it failed, as stderr says; of `doctor`: something is to be mended" },
  usage: { code: 2, means: "the command line, or what it asks for, is not valid" },
  denied: { code: 3, means: "of `check`: denied" },
  refused: { code: 4, means: "the key is missing, does not work, or does not allow this" },
  notFound: { code: 5, means: "there is no such application, session, key, nonce or profile" },
  conflict: { code: 6, means: "it was changed meanwhile, is used up, or is there already" },
  unreachable: { code: 7, means: "the service cannot be reached, or cannot answer now" },
  interrupted: { code: 130, means: "interrupted by Ctrl-C" },
} as const;

export type ExitName = keyof typeof exitCodes;
