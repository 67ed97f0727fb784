import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Keys, purposeKey } from '../../seal.ts'

/** A node of an execution, in one iteration; without a node it is the execution itself. */
export type Place = { executionId: string; nodeId: string; iteration: string }

/** For what an address is: that of an event, of a form's page, or of all that follows a form. */
export type PlacePurpose = 'resume' | 'form' | 'form progress'

/** A token that names a place, and that only this service can make. It is always the same for a place and a key. */
export function makePlaceToken(
  keys: Keys,
  purpose: PlacePurpose,
  { executionId, nodeId, iteration }: Place,
): string {
  const head = Buffer.from([keys.current, executionId, nodeId, iteration].join('|')).toString('base64url')
  return `${head}.${sign(keys, purpose, keys.current, head)}`
}

/** The place that a token names; undefined if the token is not genuine, or for something else. */
export function readPlaceToken(keys: Keys, purpose: PlacePurpose, token: string): Place | undefined {
  const [head = '', mac = ''] = token.split('.')
  const [keyId = '', executionId = '', nodeId = '', iteration = ''] = Buffer.from(head, 'base64url')
    .toString()
    .split('|')
  if (!keys.byId.has(keyId)) return undefined
  const expected = Buffer.from(sign(keys, purpose, keyId, head))
  const given = Buffer.from(mac)
  const genuine = given.length === expected.length && timingSafeEqual(given, expected)
  return genuine ? { executionId, nodeId, iteration } : undefined
}

function sign(keys: Keys, purpose: PlacePurpose, keyId: string, head: string): string {
  return createHmac('sha256', purposeKey(keys, purpose, keyId))
    .update(head)
    .digest('base64url')
}
