/** The first key of the advisory locks of folding calls to models; migrations 0061 and 0077 have it too. */
export const FOLD_LOCK = 7_226_061
