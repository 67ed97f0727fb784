/** The rule of what sexualises children; what it finds is always CRITICAL. */
export const SEXUAL_MINORS = 'sexual-minors'
