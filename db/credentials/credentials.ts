import { sql } from 'kysely'
import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { isEvalCredential } from '../evaluation/configs.ts'
import { Fault, invalid, missing } from '../fault.ts'
import { isGuardrailCredential } from '../guardrails/settings.ts'
import { guardName, tellUse } from '../owned.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import { hasTokens, mergeCredentialData, readCredentialData } from './data.ts'
import { describeData, insertCredential } from './insert.ts'
import { openCredential, sealCredential } from './seal.ts'
import type { CredentialType } from './types.ts'
import { listActiveUsers, listChannelUsers, listForwarderUsers, listReportUsers } from './usage.ts'

/** What a list says of a credential. Its data is never read out again. */
export type CredentialItem = {
  id: string
  name: string
  type: CredentialType
  teamId: string
  createdAt: Date
  updatedAt: Date
  lastTestedAt: Date | null
  testStatus: 'SUCCESS' | 'FAILED' | null
}

/**
 * A credential without its data: `keys` are the names of those that are set, `broken` is why it cannot be used until it
 * is changed, `expiresAt` when its access token ends.
 */
export type CredentialDetail = CredentialItem & {
  testMessage: string | null
  keys: string[]
  allowedHosts: string[] | null
  expiresAt: Date | null
  broken: string | null
}

const ITEM = ['id', 'name', 'type', 'teamId', 'createdAt', 'updatedAt', 'lastTestedAt', 'testStatus'] as const
const DETAIL = [...ITEM, 'testMessage', 'keys', 'allowedHosts', 'expiresAt', 'broken'] as const

/** A team's credentials, the newest first (BUILDER). They are at most 1,000. */
export async function listCredentialItems(
  scope: Scope,
  query: { teamId: string; type?: CredentialType | undefined },
): Promise<CredentialItem[]> {
  await demandTeam(scope, query.teamId, 'BUILDER')
  let found = scope.store.db.selectFrom('credentials').select(ITEM).where('teamId', '=', query.teamId)
  if (query.type) found = found.where('type', '=', query.type)
  const rows = await found.orderBy('createdAt', 'desc').orderBy('id', 'desc').execute()
  return rows as CredentialItem[]
}

/**
 * Creates a credential (BUILDER). Throws INVALID with everything that is wrong with its data, and CONFLICT if the team
 * has one of this name, or 1,000 of them.
 */
export async function createCredential(
  scope: Scope,
  input: { teamId: string; name: string; type: CredentialType; data: Record<string, unknown> },
): Promise<Pick<CredentialItem, 'id' | 'name' | 'type' | 'teamId' | 'createdAt'>> {
  const { teamId, name, type } = input
  const { data, problems } = readCredentialData(type, input.data)
  if (problems.length > 0) throw invalid(problems)
  return guardName('credentials', name, () =>
    change(scope, 'CREDENTIAL_CREATED', teamId, async (tx) => {
      const { id, createdAt } = await insertCredential(tx, scope.store.keys, { teamId, name, type, data })
      return { result: { id, name, type, teamId, createdAt }, resourceId: id, details: { name, type } }
    }),
  )
}

/** Reads a credential without its data (BUILDER). Throws NOT_FOUND. */
export async function readCredential(scope: Scope, id: string): Promise<CredentialDetail> {
  const row = await scope.store.db
    .selectFrom('credentials')
    .select(DETAIL)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('credential')
  demand(scope, row.teamId, 'BUILDER')
  return row as CredentialDetail
}

/**
 * Changes the name, and the data key by key: null removes one, the others stay (BUILDER). To change where secrets are
 * sent demands all of them in the same patch. A change of the data clears what was known of it: that it was tested or
 * is broken. Throws NOT_FOUND; CONFLICT if the team has a credential of this name; INVALID if the data is not valid as
 * a whole then.
 */
export async function updateCredential(
  scope: Scope,
  id: string,
  patch: {
    name?: string | undefined
    /** A program may send back what it has read; another type is refused. */
    type?: string | undefined
    data?: Record<string, unknown> | undefined
  },
): Promise<CredentialDetail> {
  const { teamId, type } = await readCredential(scope, id)
  if (patch.type !== undefined && patch.type !== type)
    throw invalid([{ path: 'type', message: `cannot be changed: it is ${type}. Create another credential` }])
  const { keys } = scope.store
  return guardName('credentials', patch.name ?? '', () =>
    change(scope, 'CREDENTIAL_UPDATED', teamId, async (tx) => {
      const { sealed, wrapped, renewer, ...old } = await lockCredential(tx, id)
      const place = { teamId, id, type: old.type }
      const name = patch.name ?? old.name
      const changed = name === old.name ? [] : ['name']
      let fields: object = { name }
      let redirected: string[] = []
      if (patch.data) {
        const before = openCredential(keys, place, { sealed, wrapped })
        const { data, disconnected, ...merged } = mergeCredentialData(old.type, before, patch.data)
        redirected = merged.redirected
        // What no change but a connection mends is not forgotten.
        const stays = old.type === 'OAUTH2' && !hasTokens(data) ? old.broken : null
        const differing = findChangedKeys(before, data)
        changed.push(...differing.map((key) => `data.${key}`))
        if (differing.length > 0)
          fields = {
            ...fields,
            ...sealCredential(keys, place, data),
            ...describeData(data),
            revision: old.revision + 1,
            expiresAt: differing.includes('accessToken') ? null : old.expiresAt,
            broken: disconnected ? DISCONNECTED : stays,
            // A failure with the old data must not delay the next renewal.
            ...(renewer === null ? { renewerUntil: null, renewalFailure: null } : {}),
            testStatus: null,
            testMessage: null,
            lastTestedAt: null,
          }
      }
      const result = await tx
        .updateTable('credentials')
        .set(fields)
        .$if(changed.length > 0, (query) => query.set({ updatedAt: sql<Date>`now()` }))
        .where('id', '=', id)
        .returning(DETAIL)
        .executeTakeFirstOrThrow()
      return {
        result: result as CredentialDetail,
        resourceId: id,
        details: {
          name,
          type: old.type,
          changed,
          ...(redirected.length > 0 ? { redirected } : {}),
          // Never the data, only which of it.
          ...(name === old.name ? {} : { before: { name: old.name }, after: { name } }),
        },
      }
    }),
  )
}

/**
 * Deletes a credential (BUILDER). Attempts that need it from then on fail, without another try. Throws NOT_FOUND, and
 * CONFLICT if active workflows use it, unless an ADMIN says `force`.
 */
export async function deleteCredential(scope: Scope, id: string, force = false): Promise<void> {
  const { teamId } = await readCredential(scope, id)
  if (force) demand(scope, teamId, 'ADMIN')
  await change(scope, 'CREDENTIAL_DELETED', teamId, async (tx, held) => {
    if (force) demand(held, teamId, 'ADMIN')
    // A transaction that saves or activates a workflow with the credential holds it until the commit.
    const { name, type } = await lockCredential(tx, id)
    const users = await listActiveUsers(tx, id)
    if (users.length > 0 && !force) throw new Fault('CONFLICT', tellUse(`credential "${name}"`, users))
    const forwarders = await listForwarderUsers(tx, id)
    if (forwarders.length > 0 && !force) throw new Fault('CONFLICT', describeForwarders(name, forwarders))
    const channels = await listChannelUsers(tx, id)
    if (channels.length > 0 && !force) throw new Fault('CONFLICT', describeChannels(name, channels))
    const reports = await listReportUsers(tx, id)
    if (reports.length > 0 && !force) throw new Fault('CONFLICT', describeReports(name, reports))
    if (!force && (await isGuardrailCredential(tx, id))) throw new Fault('CONFLICT', describeGuardrails(name))
    if (!force && (await isEvalCredential(tx, id))) throw new Fault('CONFLICT', describeEvaluations(name))
    await tx.deleteFrom('credentials').where('id', '=', id).execute()
    const details = { name, type, ...(users.length > 0 ? { activeWorkflows: users.length } : {}) }
    return { result: undefined, resourceId: id, details }
  })
}

async function lockCredential(tx: Tx, id: string) {
  const row = await tx
    .selectFrom('credentials')
    .select([...DETAIL, 'sealed', 'wrapped', 'revision', 'renewer'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('credential')
  return { ...row, type: row.type as CredentialType }
}

function findChangedKeys(before: Record<string, unknown>, after: Record<string, unknown>): string[] {
  const all = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...all].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
}

const DISCONNECTED = 'It was changed where its secrets are sent, so its tokens were removed: connect it again'

function describeForwarders(name: string, forwarders: string[]): string {
  const named = forwarders.map((one) => `"${one}"`).join(', ')
  return (
    `Audit forwarders use the credential "${name}": ${named}. Give them another one or disable them first; an ADMIN can ` +
    'delete it anyway with force=true, and then they send nothing'
  )
}

function describeEvaluations(name: string): string {
  return (
    `Evaluations ask their judge with the credential "${name}". Give them another one first; an ADMIN can delete it ` +
    'anyway with force=true, and then they fail'
  )
}

function describeChannels(name: string, channels: string[]): string {
  const named = channels.map((one) => `"${one}"`).join(', ')
  return (
    `Notification channels use the credential "${name}": ${named}. Give them another one or disable them first; an ADMIN ` +
    'can delete it anyway with force=true, and then they send nothing'
  )
}

function describeReports(name: string, reports: string[]): string {
  const named = reports.map((one) => `"${one}"`).join(', ')
  return (
    `Scheduled reports use the credential "${name}": ${named}. Give them another one or disable them first; an ADMIN ` +
    'can delete it anyway with force=true, and then they send nothing'
  )
}

function describeGuardrails(name: string): string {
  return (
    `The team's guardrails ask their model with the credential "${name}". Give them another one first; an ADMIN can ` +
    'delete it anyway with force=true, and then the checks that ask the model cannot be made'
  )
}
