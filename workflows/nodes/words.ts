import { getOwn } from '../json.ts'
import { findSimilar } from '../suggest.ts'
import { NODES } from './nodes.ts'

/** The words of other tools for node types. Types that this release does not have are left out. */
const WORDS: Record<string, string> = {
  IF: 'IF_ELSE',
  CONDITION: 'IF_ELSE',
  BRANCH: 'IF_ELSE',
  LOOP: 'FOR_EACH',
  MAP_EACH: 'FOR_EACH',
  WHILE: 'REPEAT',
  UNTIL: 'REPEAT',
  DELAY: 'WAIT',
  SLEEP: 'WAIT',
  TIMER: 'WAIT',
  CRON: 'SCHEDULE_TRIGGER',
  START: 'MANUAL_TRIGGER',
  TRIGGER: 'MANUAL_TRIGGER',
  MANUAL: 'MANUAL_TRIGGER',
  REQUEST: 'HTTP_REQUEST',
  HTTP: 'HTTP_REQUEST',
  FETCH: 'HTTP_REQUEST',
  API: 'HTTP_REQUEST',
  HOOK: 'WEBHOOK_TRIGGER',
  WEBHOOK: 'WEBHOOK_TRIGGER',
  RESPOND: 'RESPOND_TO_WEBHOOK',
  RESPONSE: 'RESPOND_TO_WEBHOOK',
  EVENT: 'WAIT_FOR_EVENT',
  FORM_PAGE: 'FORM',
  STOP: 'STOP_AND_ERROR',
  FAIL: 'STOP_AND_ERROR',
  ERROR: 'STOP_AND_ERROR',
  THROW: 'STOP_AND_ERROR',
  NOOP: 'NO_OP',
  EXPRESSION: 'TRANSFORM',
  FUNCTION: 'CODE',
  JAVASCRIPT: 'CODE',
  JS: 'CODE',
  SCRIPT: 'CODE',
  UNIQUE: 'DEDUPLICATE',
  EXECUTE_WORKFLOW: 'SUB_WORKFLOW',
  CALL_WORKFLOW: 'SUB_WORKFLOW',
  HUMAN: 'APPROVAL',
  APPROVE: 'APPROVAL',
  EDIT_FIELDS: 'SET',
  ASSIGN: 'SET',
}

/** The node type that was probably meant by one that does not exist. */
export function suggestType(given: string): string | undefined {
  const word = getOwn(
    WORDS,
    given
      .trim()
      .toUpperCase()
      .replace(/[\s-]+/g, '_'),
  )
  if (word !== undefined && Object.hasOwn(NODES, word)) return word
  return findSimilar(given, Object.keys(NODES))
}
