import { createHmac, timingSafeEqual } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { sql } from 'kysely'
import { parse as parseUuid, stringify as stringifyUuid, v7 as uuid } from 'uuid'
import { record } from '../change.ts'
import type { Store } from '../scope.ts'
import { type Keys, purposeKey } from '../seal.ts'

/** What the owner of an address can say: yes or no to the mails of one team, or no to those of all teams, for ever. */
export const MAIL_CHOICES = ['yes', 'stop', 'never'] as const
export type MailChoice = (typeof MAIL_CHOICES)[number]

/** What the page of a link shows: `state` is null while nothing was said. */
export type ChoiceView = { address: string; teamName: string; state: 'YES' | 'NO' | 'NEVER' | null }

const PURPOSE = 'mail choice'
const MAC_BYTES = 16
const ID_BYTES = 16
const TOKEN = /^[\w-]{43,64}$/

/** An address as it is compared: in lower case, its domain in ASCII, without the dot that a domain may end with. */
export function foldAddress(address: string): string {
  const at = address.lastIndexOf('@') + 1
  const domain = address.slice(at).replace(/[.。．｡]+$/, '')
  return `${address.slice(0, at)}${domainToASCII(domain) || domain}`.toLowerCase()
}

/** What the links of a mail to this address name: only its owner has it. It is the same each time, until the keys change. */
export async function makeChoiceToken(store: Store, teamId: string, address: string): Promise<string> {
  const id = await record(store, (tx) =>
    sql<{ id: string }>`
      insert into mail_choices (id, team_id, address) values (${uuid()}, ${teamId}, ${foldAddress(address)})
      on conflict (team_id, address) do update set team_id = excluded.team_id
      returning id`.execute(tx),
  ).then(({ rows }) => rows[0]!.id)
  return signId(store.keys, id)
}

/** The choice that was made with a link before. Undefined if the link is not of this service, or its team is deleted. */
export async function readMailChoice(store: Store, token: string): Promise<ChoiceView | undefined> {
  const id = verifyToken(store.keys, token)
  if (id === undefined) return undefined
  const { rows } = await sql<ChoiceView>`
    select c.address, t.name as team_name,
      case when f.address is not null then 'NEVER' else c.state end as state
    from mail_choices c join teams t on t.id = c.team_id left join mail_refusals f on f.address = c.address
    where c.id = ${id}`.execute(store.db)
  return rows[0]
}

/** Notes what the owner of an address says; the same again changes nothing. Undefined as readMailChoice. */
export async function decideMailChoice(
  store: Store,
  token: string,
  choice: MailChoice,
): Promise<ChoiceView | undefined> {
  const id = verifyToken(store.keys, token)
  if (id === undefined) return undefined
  await record(store, async (tx) => {
    const state = choice === 'yes' ? 'YES' : 'NO'
    const { rows } = await sql<{ address: string }>`
      update mail_choices set state = ${state}, decided_at = case when state = ${state} then decided_at else now() end
      where id = ${id} returning address`.execute(tx)
    const address = rows[0]?.address
    if (address === undefined) return
    if (choice === 'never')
      await sql`insert into mail_refusals (address) values (${address}) on conflict do nothing`.execute(tx)
    // Who says yes to one team has changed their mind about all.
    if (choice === 'yes') await sql`delete from mail_refusals where address = ${address}`.execute(tx)
  })
  return readMailChoice(store, token)
}

function signId(keys: Keys, id: string): string {
  const bytes = Buffer.from(parseUuid(id))
  const head = Buffer.concat([bytes, makeMac(keys, keys.current, bytes)])
  return `${head.toString('base64url')}${Buffer.from(keys.current).toString('base64url')}`
}

function verifyToken(keys: Keys, token: string): string | undefined {
  if (!TOKEN.test(token)) return undefined
  const length = Math.ceil(((ID_BYTES + MAC_BYTES) * 8) / 6)
  const head = Buffer.from(token.slice(0, length), 'base64url')
  const keyId = Buffer.from(token.slice(length), 'base64url').toString()
  if (head.length !== ID_BYTES + MAC_BYTES || !keys.byId.has(keyId)) return undefined
  const id = head.subarray(0, ID_BYTES)
  if (!timingSafeEqual(head.subarray(ID_BYTES), makeMac(keys, keyId, id))) return undefined
  return stringifyUuid(id)
}

function makeMac(keys: Keys, keyId: string, id: Uint8Array): Buffer {
  return createHmac('sha256', purposeKey(keys, PURPOSE, keyId))
    .update(id)
    .digest()
    .subarray(0, MAC_BYTES)
}
