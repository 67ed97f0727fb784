import { type RawBuilder, sql } from 'kysely'
import { changeInstance, record } from '../change.ts'
import { type Rotation, rotateCredentials } from '../credentials/rotate.ts'
import { rotateChannels } from '../monitoring/channels/rotate.ts'
import type { Scope, Store } from '../scope.ts'
import { rotateExamples } from '../workflows/examplevalues.ts'
import { rotateMemory } from '../workflows/kept/nodememory.ts'
import { rotateStaticData } from '../workflows/kept/staticdata.ts'
import { keyIdWithin } from './reseal.ts'
import { countCredentialKeys, judgeKey } from './sealkeys.ts'

/** What else than credentials is sealed or signed with a key, and where its id is. */
const PLACES: Record<KeyPlace, { from: RawBuilder<unknown>; keyId: RawBuilder<unknown> }> = {
  outputs: { from: sql`blobs`, keyId: keyIdWithin('sealed') },
  requests: { from: sql`node_requests`, keyId: keyIdWithin('sealed') },
  pages: { from: sql`request_pages`, keyId: keyIdWithin('sealed') },
  files: { from: sql`file_pieces`, keyId: keyIdWithin('sealed') },
  messages: { from: sql`message_notes`, keyId: keyIdWithin('sealed') },
  callbacks: { from: sql`callbacks`, keyId: keyIdWithin('target') },
  channels: {
    from: sql`(select * from notification_channels where sealed is not null) c`,
    keyId: keyIdWithin('sealed'),
  },
  examples: { from: sql`workflow_examples`, keyId: keyIdWithin('sealed') },
  memory: { from: sql`memory_turns`, keyId: keyIdWithin('sealed') },
  staticData: { from: sql`static_data`, keyId: keyIdWithin('sealed') },
  audit: { from: sql`audit_entries`, keyId: sql`key_id` },
}
export const KEY_PLACES = [
  'outputs',
  'requests',
  'pages',
  'files',
  'messages',
  'callbacks',
  'channels',
  'examples',
  'memory',
  'staticData',
  'audit',
] as const
export type KeyPlace = (typeof KEY_PLACES)[number]

/** How long the counting of one place may take. */
const COUNT_LIMIT = '30s'

/** The facts about a key. */
export type KeyUse = {
  id: string
  current: boolean
  /** Whether this process has it, and it is the one that the installation has used: 'other' has other bytes. */
  here: 'yes' | 'no' | 'other'
  notedAt: Date | null
  credentials: number
  /** How many rows of each place need it; null where counting takes too long. */
  others: Record<KeyPlace, number | null>
}

/** Lists the keys of this process and all that the installation has had, the current one first. */
export async function listKeyUse(store: Store): Promise<KeyUse[]> {
  const { current, byId } = store.keys
  const noted = await store.db.selectFrom('sealKeys').select(['id', 'notedAt']).execute()
  const credentials = await countCredentialKeys(store)
  const counts = await Promise.all(KEY_PLACES.map((place) => countKeys(store, place)))
  const ids = new Set([
    current,
    ...byId.keys(),
    ...noted.map(({ id }) => id),
    ...credentials.map(({ keyId }) => keyId),
  ])
  const uses: KeyUse[] = []
  for (const id of ids) {
    const here = !byId.has(id) ? 'no' : (await judgeKey(store, id)) === false ? 'other' : 'yes'
    const others = KEY_PLACES.map((place, at) => [place, counts[at] ? (counts[at].get(id) ?? 0) : null])
    uses.push({
      id,
      current: id === current,
      here,
      notedAt: noted.find((one) => one.id === id)?.notedAt ?? null,
      credentials: credentials.find(({ keyId }) => keyId === id)?.count ?? 0,
      others: Object.fromEntries(others),
    })
  }
  return uses
}

/**
 * Wraps the key of every credential anew with the current key, reseals the secrets of every notification channel, the
 * saved examples of workflows, their static data and the memory of their nodes with it, and notes that in the
 * instance's audit chain (operator).
 */
export async function rotateKeys(scope: Scope, tell: (done: number) => void): Promise<Rotation> {
  const done = await rotateCredentials(scope.store, tell)
  const { rewrapped, closed } = done
  const channels = await rotateChannels(scope.store)
  const examples = await rotateExamples(scope.store)
  const memory = await rotateMemory(scope.store)
  const staticData = await rotateStaticData(scope.store)
  const to = scope.store.keys.current
  const resealed = { rewrapped, channels, examples, memory, staticData }
  const details = { to, ...resealed, closed: closed.length }
  await changeInstance(scope, 'KEYS_ROTATED', async () =>
    Object.values(resealed).every((count) => count === 0)
      ? { result: undefined, unchanged: true }
      : { result: undefined, resourceId: null, details },
  )
  return done
}

/** Rows by the id of their key; undefined if counting takes too long. */
async function countKeys(store: Store, place: KeyPlace): Promise<Map<string, number> | undefined> {
  const { from, keyId } = PLACES[place]
  try {
    return await record(store, async (tx) => {
      await sql`set local statement_timeout = ${sql.lit(COUNT_LIMIT)}`.execute(tx)
      const { rows } = await sql<{ id: string | Buffer | null; count: number }>`
        select ${keyId} as id, count(*) as count from ${from} group by 1`.execute(tx)
      return new Map(rows.map(({ id, count }) => [String(id ?? '').replace(/\0+$/, ''), count]))
    })
  } catch (error) {
    if ((error as { code?: string }).code !== CANCELLED) throw error
    return undefined
  }
}

/** PostgreSQL's query_canceled. */
const CANCELLED = '57014'
