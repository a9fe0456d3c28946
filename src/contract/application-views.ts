/** Applications that expire within this time count as expiring, in the overview and in the console. */
export const expiringDays = 30;

/** Applications that were not used for this time count as unused. */
export const unusedDays = 90;
