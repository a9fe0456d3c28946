/** For tests that call as often, and are refused as often, as no honest caller. */
export const rateLimitsOff = {
  RATE_LIMIT_PUBLIC: "off",
  RATE_LIMIT_PRIVATE: "off",
  RATE_LIMIT_MANAGEMENT: "off",
  RATE_LIMIT_FAILURES: "off",
};
