import { sql } from 'kysely'
import type { Tx } from './connection.ts'
import { Fault, missing } from './fault.ts'
import { type Lock, lockFor } from './locks.ts'

/**
 * The lists that a team makes, by table. Those who add to one are counted one after the other: by a `lock`, or by the
 * team's row. `unique` is the constraint of the name, which a team has once. Some are lists `of` something else.
 */
const LISTS = {
  audit_forwarders: { noun: 'forwarder', lock: 'forwarders' },
  connectors: { noun: 'connector', unique: 'connectors_name' },
  credentials: { noun: 'credential', unique: 'credentials_team_id_name_key' },
  data_tables: { noun: 'data table', lock: 'dataTables', unique: 'data_tables_name' },
  guardrail_exemplars: { noun: 'exemplar', unique: 'guardrail_exemplars_name' },
  guardrail_rules: { noun: 'rule', unique: 'guardrail_rules_team_id_name_key' },
  notification_channels: { noun: 'channel', lock: 'channels', unique: 'notification_channels_name' },
  playbooks: { noun: 'playbook', lock: 'playbooks', unique: 'playbooks_name' },
  scheduled_reports: { noun: 'report', lock: 'scheduledReports' },
  variables: { noun: 'variable', unique: 'variables_team_id_key_key' },
  widgets: { noun: 'widget', lock: 'widgets' },
  workflow_examples: {
    noun: 'example',
    of: 'workflow',
    lock: 'examples',
    unique: 'workflow_examples_name',
  },
} as const satisfies Record<string, { noun: string; of?: string; lock?: Lock; unique?: string }>
type List = keyof typeof LISTS
type NamedList = { [L in List]: (typeof LISTS)[L] extends { unique: string } ? L : never }[List]

/** The row that a query finds; with `forUpdate()` in the query it is locked. Throws NOT_FOUND. */
export async function findOwned<Row>(
  query: { executeTakeFirst: () => Promise<Row | undefined> },
  noun: string,
): Promise<Row> {
  const row = await query.executeTakeFirst()
  if (row === undefined) throw missing(noun)
  return row
}

/**
 * Throws CONFLICT if the team, or what else the list is of, has `max` rows of it that `counted` is true for; others who
 * add wait till the commit.
 */
export async function demandRoom(
  tx: Tx,
  list: List,
  ownerId: string,
  max: number,
  counted = sql<boolean>`true`,
): Promise<void> {
  const { noun, ...own } = LISTS[list]
  const of = ownerOf(list)
  if ('lock' in own) await lockFor(tx, own.lock, ownerId)
  else await holdTeam(tx, ownerId)
  const { rows } = await sql<{ known: number }>`select count(*)::int as known from ${sql.table(list)}
    where ${sql.ref(`${of}_id`)} = ${ownerId} and ${counted}`.execute(tx)
  if (rows[0]!.known < max) return
  throw new Fault(
    'CONFLICT',
    'lock' in own
      ? `A ${of} can have ${max} ${noun}s: delete one of them`
      : `The team has ${max} ${noun}s already; more are not allowed`,
  )
}

function ownerOf(list: List): string {
  const own = LISTS[list]
  return 'of' in own ? own.of : 'team'
}

/** Makes others who count what the team has wait, but not inserts that only refer to the team. */
export async function holdTeam(tx: Tx, teamId: string): Promise<void> {
  await tx.selectFrom('teams').select('id').where('id', '=', teamId).forNoKeyUpdate().execute()
}

/** Throws CONFLICT where `work` finds that there is one of this name in the list. */
export function guardName<T>(list: NamedList, name: string, work: () => Promise<T>): Promise<T> {
  const { noun, unique } = LISTS[list]
  const one = `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`
  return guardUnique({ [unique]: `The ${ownerOf(list)} already has ${one} named "${name}"` }, work)
}

/** Throws CONFLICT with the sentence of the constraint that `work` breaks. */
export async function guardUnique<T>(sentences: Record<string, string>, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { constraint } = error as { constraint?: string }
    const sentence = constraint === undefined ? undefined : sentences[constraint]
    throw sentence === undefined ? error : new Fault('CONFLICT', sentence)
  }
}

/** How many users of something a refusal names. */
const MAX_USERS = 5

/**
 * The sentence that refuses to delete what workflows use, such as `credential "A"`: `who` they are, and the way to delete
 * it without harm.
 */
export function tellUse(
  what: string,
  users: readonly { name: string }[],
  { who = 'Active workflows', way = 'Give them another one or deactivate them first' } = {},
): string {
  const named = users.slice(0, MAX_USERS).map((one) => `"${one.name}"`)
  const rest = users.length > MAX_USERS ? ` and ${users.length - MAX_USERS} more` : ''
  return (
    `${who} use the ${what}: ${named.join(', ')}${rest}. ${way}; an ADMIN can delete it anyway with force=true, and then ` +
    'they fail where they need it'
  )
}
