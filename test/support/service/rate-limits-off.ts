/** For tests that send or fail more requests than the default rate limits allow. */
export const rateLimitsOff = {
  RATE_LIMIT_PUBLIC: "off",
  RATE_LIMIT_PRIVATE: "off",
  RATE_LIMIT_MANAGEMENT: "off",
  RATE_LIMIT_FAILURES: "off",
  RATE_LIMIT_SESSIONS: "off",
};
