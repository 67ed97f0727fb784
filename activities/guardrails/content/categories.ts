import { CONTENT_TYPES, type ContentType } from '../../../workflows/guardrails/names.ts'

/** The kinds of content that a check can be asked to find. */
export const CONTENT_CATEGORIES = CONTENT_TYPES

export type ContentCategory = ContentType

/** The rule of what sexualises children; its findings are always CRITICAL. */
export const SEXUAL_MINORS = 'sexual-minors'
