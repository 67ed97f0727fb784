/** The most bytes that a file may have: 64 MB. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024

/** The most files that an execution may have, besides those that it has taken over from an earlier one. */
export const MAX_RUN_FILES = 100
