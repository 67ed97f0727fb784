import { createHash } from 'node:crypto'
import type { Db } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import { readJsonText } from '../waits/jsontext.ts'

/** What tells whether a start is the same as an earlier one. */
type Repeatable = {
  id?: string
  idempotencyKey?: string | undefined
  once?: string | undefined
  data: unknown
  given?: unknown
  onlyNode?: string | undefined
  asked?: unknown
  sent?: unknown
}

/** The execution that the same id or key has started. Throws CONFLICT if the key was used with other data. */
export async function findEarlier(db: Db, workflowId: string, start: Repeatable) {
  const { id, idempotencyKey, once } = start
  const key = idempotencyKey ?? once
  if (id === undefined && key === undefined) return undefined
  const earlier = await db
    .selectFrom('executions')
    .select(['id as executionId', 'status', 'createdAt as startedAt', 'queuedAt', 'idempotencyHash'])
    .where('workflowId', '=', workflowId)
    .where((eb) => {
      const byId = id === undefined ? [] : [eb('id', '=', id)]
      const byKey =
        key === undefined || (id !== undefined && once === undefined) ? [] : [eb('idempotencyKey', '=', key)]
      return eb.or([...byId, ...byKey])
    })
    .executeTakeFirst()
  if (!earlier) return undefined
  const { idempotencyHash, queuedAt, ...started } = earlier
  if (id || once || idempotencyHash?.equals(hashData(start))) {
    return { ...started, fresh: false, queued: queuedAt !== null }
  }
  throw new Fault('CONFLICT', 'This Idempotency-Key was used with another body')
}

/** A hash of what the request contained; the order of keys in objects does not matter. */
export function hashData({ data, given, onlyNode, asked, sent }: Repeatable): Buffer {
  const made = given || onlyNode ? [data, given, onlyNode, asked] : data
  const body = sent === undefined ? made : { sent }
  const text = JSON.stringify(body, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const text = readJsonText(value)
    if (text !== undefined) return text
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  return createHash('sha256').update(text).digest()
}
