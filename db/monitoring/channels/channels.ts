import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { demandMailCredential } from '../../credentials/references.ts'
import { Fault, invalid } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
import { askRecipients } from '../../mail/recipients.ts'
import { type MailView, viewMails } from '../../mail/view.ts'
import { demandRoom, findOwned, guardName } from '../../owned.ts'
import { describeChange } from '../../redaction/difference.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import {
  type ChannelSecrets,
  hideUrl,
  makeWebhookSecret,
  OLD_SECRET_HOURS,
  openChannel,
  sealChannel,
} from './secrets.ts'

export const NOTIFICATION_CHANNEL_TYPES = ['EMAIL', 'SLACK', 'WEBHOOK'] as const
export type ChannelType = (typeof NOTIFICATION_CHANNEL_TYPES)[number]

/** EMAIL has recipients, and the others a URL, of which only the origin is shown. */
type ChannelConfig = { recipients: string[]; credentialId: string | null } | { url: string }

/** A channel as the API shows it; one of mail with whom it reaches. */
export type Channel = {
  id: string
  teamId: string
  name: string
  type: ChannelType
  enabled: boolean
  config: ChannelConfig
  createdAt: Date
  updatedAt: Date
} & Partial<MailView>

/**
 * The fields to change, or to make a channel with. Parts of `config` that do not belong to the channel's type are
 * refused.
 */
export type ChannelPatch = {
  name?: string | undefined
  enabled?: boolean | undefined
  config?:
    | {
        recipients?: string[] | undefined
        credentialId?: string | null | undefined
        url?: string | undefined
      }
    | undefined
}

/** A channel as it sends. `sealed` is null for EMAIL. */
export type ChannelRow = {
  id: string
  teamId: string
  name: string
  type: ChannelType
  enabled: boolean
  recipients: string[]
  credentialId: string | null
  /** Who has changed it last, if that is known. */
  changedBy: string | null
  sealed: Buffer | null
}

/** How many channels a team may have. */
export const MAX_CHANNELS = 50

/** The channels of a team, the oldest first (VIEWER). */
export async function listChannels(scope: Scope, teamId: string): Promise<Channel[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const rows = await select(scope.store.db, teamId).orderBy('createdAt').orderBy('id').execute()
  return showAll(scope.store, teamId, rows)
}

/** One channel of a team (VIEWER). Throws NOT_FOUND. */
export async function readChannel(scope: Scope, teamId: string, id: string): Promise<Channel> {
  await demandTeam(scope, teamId, 'VIEWER')
  const [shown] = await showAll(scope.store, teamId, [await find(scope.store.db, teamId, id)])
  return shown!
}

/**
 * Adds a channel (ADMIN). `secret` signs the requests of a webhook: it is not shown again. Throws as `change`; INVALID
 * for a credential that is not for mail; CONFLICT for a name that is taken, and if there are too many.
 */
export async function createChannel(
  scope: Scope,
  teamId: string,
  input: ChannelPatch & { name: string; type: ChannelType },
): Promise<Channel & { secret?: string }> {
  const { name, type, enabled = true, config = {} } = input
  const made = await guardName('notification_channels', name, () =>
    change(scope, 'NOTIFICATION_CHANNEL_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'notification_channels', teamId, MAX_CHANNELS)
      demandFields(type, config, true)
      const { recipients = [], credentialId = null, url } = config
      await demandMailCredential(tx, teamId, credentialId, 'config.credentialId')
      const id = uuid()
      const secret = type === 'WEBHOOK' ? makeWebhookSecret() : null
      const shut = url ? sealUrl(scope.store, { teamId, id }, { url, secret }) : {}
      const mine = { changedBy: scope.userId }
      const row = { id, teamId, name, type, enabled, recipients, credentialId, ...mine, ...shut }
      await tx.insertInto('notificationChannels').values(row).execute()
      const result = show(await find(tx, teamId, id))
      return {
        result: { ...result, ...(secret === null ? {} : { secret }) },
        resourceId: id,
        details: describe(result),
      }
    }),
  )
  return { ...made, ...(await askAndView(scope, made)) }
}

/**
 * Changes what is given (ADMIN), but never the type; a URL as it is shown stays what it is. A webhook with another URL has
 * another `secret`, which is not shown again: who has received until now could sign what the new receiver takes for
 * genuine. Throws as createChannel, and NOT_FOUND.
 */
export async function updateChannel(
  scope: Scope,
  teamId: string,
  id: string,
  { name, enabled, config = {} }: ChannelPatch,
): Promise<Channel & { secret?: string }> {
  const { keys } = scope.store
  const changed = await guardName('notification_channels', name ?? '', () =>
    change(scope, 'NOTIFICATION_CHANNEL_UPDATED', teamId, async (tx) => {
      const row = await lock(tx, teamId, id)
      const before = show(row)
      demandFields(before.type, config, false)
      const { recipients, credentialId, url } = config
      if (credentialId && credentialId !== row.credentialId)
        await demandMailCredential(tx, teamId, credentialId, 'config.credentialId')
      const isNew =
        url !== undefined &&
        url !== row.shownUrl &&
        url !== openChannel(keys, { teamId, id }, row.sealed!).url
      // Neither the secret so far nor the one before it signs what goes to the new URL.
      const secret = isNew && before.type === 'WEBHOOK' ? makeWebhookSecret() : null
      const shut = isNew ? sealUrl(scope.store, { teamId, id }, { url, secret }) : {}
      const given = { name, enabled, recipients, credentialId }
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      await tx
        .updateTable('notificationChannels')
        .set({ ...set, ...shut, changedBy: scope.userId, updatedAt: sql<Date>`now()` })
        .where('id', '=', id)
        .execute()
      const result = show(await find(tx, teamId, id))
      const told = describeChange(describe(before), describe(result))
      return {
        result: { ...result, ...(secret === null ? {} : { secret }) },
        resourceId: id,
        details: { name: result.name, ...told, urlChanged: isNew },
      }
    }),
  )
  return { ...changed, ...(await askAndView(scope, changed)) }
}

/**
 * Makes a new secret for the signatures of a webhook (ADMIN). The one before signs too, for a day. Throws NOT_FOUND, and
 * CONFLICT if the channel is no webhook.
 */
export async function rotateChannelSecret(
  scope: Scope,
  teamId: string,
  id: string,
): Promise<{ secret: string; previousUntil: Date }> {
  const { keys } = scope.store
  return change(scope, 'NOTIFICATION_CHANNEL_SECRET_ROTATED', teamId, async (tx) => {
    const row = await lock(tx, teamId, id)
    const known = row.sealed && openChannel(keys, { teamId, id }, row.sealed)
    if (!known?.secret) throw new Fault('CONFLICT', 'Only webhooks are signed')
    const previousUntil = new Date(Date.now() + OLD_SECRET_HOURS * 3_600_000)
    const secret = makeWebhookSecret()
    const previous = { secret: known.secret, until: previousUntil.toISOString() }
    const sealed = sealChannel(keys, { teamId, id }, { url: known.url, secret, previous })
    const set = { sealed, updatedAt: sql<Date>`now()` }
    await tx.updateTable('notificationChannels').set(set).where('id', '=', id).execute()
    return { result: { secret, previousUntil }, resourceId: id, details: { name: row.name } }
  })
}

/**
 * Deletes a channel (ADMIN), and takes it out of the team's config. What waits to be sent to it has failed then. Throws
 * NOT_FOUND.
 */
export async function deleteChannel(scope: Scope, teamId: string, id: string): Promise<void> {
  await change(scope, 'NOTIFICATION_CHANNEL_DELETED', teamId, async (tx) => {
    // Who changes the config at the same time would write the list with this channel back.
    await lockFor(tx, 'monitoringConfigs', teamId)
    const known = show(await lock(tx, teamId, id))
    await tx.deleteFrom('notificationChannels').where('id', '=', id).execute()
    // Who writes deliveries holds the channel until the commit, so that they are here now.
    await sql`update notification_deliveries set status = 'FAILED', settled_at = now(), lease = null,
      last_error = 'The channel was deleted' where channel_id = ${id} and status = 'PENDING'`.execute(tx)
    await sql`update monitoring_configs set notification_channels = array_remove(notification_channels, ${known.id})
      where team_id = ${teamId} and ${known.id} = any(notification_channels)`.execute(tx)
    return { result: undefined, resourceId: id, details: describe(known) }
  })
}

/** Notes that a channel was tried, and what came of it (ADMIN). */
export async function noteChannelTest(
  scope: Scope,
  { id, teamId, name }: Pick<Channel, 'id' | 'teamId' | 'name'>,
  said: { status: 'SUCCESS' | 'FAILED'; message: string },
): Promise<void> {
  await change(scope, 'NOTIFICATION_CHANNEL_TESTED', teamId, async () => ({
    result: undefined,
    resourceId: id,
    details: { name, ...said },
  }))
}

/** A channel of a team, for the service itself to send with; undefined if the team does not have it. */
export async function findChannel(db: Db, teamId: string, id: string): Promise<ChannelRow | undefined> {
  const row = await select(db, teamId).where('id', '=', id).executeTakeFirst()
  return row && { ...row, type: row.type as ChannelType }
}

function select(db: Db, teamId: string) {
  return db.selectFrom('notificationChannels').selectAll().where('teamId', '=', teamId)
}

const find = (db: Db, teamId: string, id: string) =>
  findOwned(select(db, teamId).where('id', '=', id), 'channel')

const lock = (tx: Tx, teamId: string, id: string) =>
  findOwned(select(tx, teamId).where('id', '=', id).forUpdate(), 'channel')

function show(row: Awaited<ReturnType<typeof find>>): Channel {
  const { id, teamId, name, enabled, recipients, credentialId, shownUrl, createdAt, updatedAt } = row
  const type = row.type as ChannelType
  const config = type === 'EMAIL' ? { recipients, credentialId } : { url: shownUrl ?? '' }
  return { id, teamId, name, type, enabled, config, createdAt, updatedAt }
}

/** Channels with whom those of mail reach. */
async function showAll(
  store: Store,
  teamId: string,
  rows: Awaited<ReturnType<typeof find>>[],
): Promise<Channel[]> {
  const mails = rows.filter(({ type }) => type === 'EMAIL')
  const views = await viewMails(store, teamId, mails)
  return rows.map((row) => ({ ...show(row), ...views[mails.indexOf(row)] }))
}

/** Has those asked who have not said yes, and says whom the channel reaches; nothing of one that is not mail. */
async function askAndView(
  { store, userId }: Scope,
  { teamId, enabled, config }: Channel,
): Promise<Partial<MailView>> {
  if (!('recipients' in config)) return {}
  const { recipients, credentialId } = config
  if (enabled && credentialId === null) await askRecipients(store, { teamId, userId }, recipients)
  const [view] = await viewMails(store, teamId, [{ recipients, credentialId, changedBy: userId }])
  return view!
}

function sealUrl({ keys }: Store, place: { teamId: string; id: string }, secrets: ChannelSecrets) {
  return { shownUrl: hideUrl(secrets.url), sealed: sealChannel(keys, place, secrets) }
}

/** What the audit says of a channel. */
function describe({ name, type, enabled, config }: Channel) {
  return { name, type, enabled, ...config }
}

function demandFields(type: ChannelType, config: NonNullable<ChannelPatch['config']>, whole: boolean): void {
  const own = type === 'EMAIL' ? ['recipients', 'credentialId'] : ['url']
  const strange = Object.entries(config).filter(([key, value]) => value != null && !own.includes(key))
  const problems = strange.map(([key]) => ({ path: `config.${key}`, message: `is not for ${type}` }))
  const needed = own[0] as 'recipients' | 'url'
  if (whole && config[needed] === undefined)
    problems.push({ path: `config.${needed}`, message: `is required for ${type}` })
  if (problems.length > 0) throw invalid(problems)
}
