/** How often those who watch are told that nothing happened, in milliseconds, where they do not say. */
export const defaultHeartbeat = 500;
