import { createHmac } from 'node:crypto'
import { type Keys, purposeKey } from '../seal.ts'

/**
 * The header that each call of a workflow carries, by which the service knows its own calls however they come
 * in: over a proxy, under another name, or at an API process whose address the worker does not know.
 */
export const CALL_MARK = 'perdure-call'

/** The header's value. It is no secret, and means nothing to others: it only takes rights away. */
export function makeCallMark(keys: Keys, id = keys.current): string {
  return createHmac('sha256', purposeKey(keys, 'call mark', id))
    .digest('hex')
    .slice(0, 32)
}

/** Whether a process that shares these keys has made the value, with whichever of them. */
export function isCallMark(keys: Keys, value: string): boolean {
  return [...keys.byId.keys()].some((id) => makeCallMark(keys, id) === value)
}
