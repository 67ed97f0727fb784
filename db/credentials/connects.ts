import { createHash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { change, record, write } from '../change.ts'
import { Fault } from '../fault.ts'
import { readOwner } from '../owners.ts'
import { demand, demandPerson, type Scope, type Store } from '../scope.ts'
import { type Keys, seal, unseal } from '../seal.ts'
import { type Grant, lockGrant, readGrant, setTokens, type Tokens } from './oauth.ts'
import { credentialKind } from './types.ts'

/** How long a person may take at the authorization server. */
const CONNECT_MINUTES = 10

/** The number of attempts to connect a credential that may be open at once for a person; the oldest end first. */
const MAX_OPEN = 5

const PURPOSE = 'connect'

/** What the browser is sent to the authorization server with. */
export type Connect = { grant: Grant; state: string; challenge: string }

/** The attempt of a person who is back from the authorization server. */
export type Connecting = { grant: Grant; verifier: string }

/** Begins to connect a credential of the type OAUTH2 in a session of the caller's (BUILDER). Throws NOT_FOUND, CONFLICT. */
export async function beginConnect(scope: Scope, id: string, sessionId: string): Promise<Connect> {
  const { store } = scope
  const userId = demandPerson(scope)
  const teamId = await readOwner(store, 'credentials', id)
  demand(scope, teamId, 'BUILDER')
  return change(scope, 'CREDENTIAL_CONNECT_BEGUN', teamId, async (tx) => {
    const grant = await lockGrant(tx, store.keys, { id, teamId })
    demandConnectable(grant)
    const state = randomBytes(32).toString('base64url')
    const verifier = randomBytes(32).toString('base64url')
    const stateHash = hashState(state)
    const text = Buffer.from(JSON.stringify({ verifier, client: printClient(grant) }))
    const sealed = seal(store.keys, PURPOSE, nameConnect(id, stateHash), text)
    const expiresAt = sql<Date>`now() + ${CONNECT_MINUTES} * interval '1 minute'`
    await tx
      .insertInto('credentialConnects')
      .values({ stateHash, credentialId: id, userId, sessionId, sealed, expiresAt })
      .execute()
    await sql`delete from credential_connects where credential_id = ${id} and state_hash in (
      select state_hash from credential_connects where credential_id = ${id} and user_id = ${userId}
      order by expires_at desc offset ${MAX_OPEN})`.execute(tx)
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    return { result: { grant, state, challenge }, resourceId: id, details: { name: grant.name } }
  })
}

/**
 * Takes the state with which the authorization server has sent a person back. It works once, and only in the session
 * that began with it. Throws CONFLICT, which says what to do, or FORBIDDEN, NOT_FOUND.
 */
export async function takeConnect(scope: Scope, state: string, sessionId: string): Promise<Connecting> {
  const { store } = scope
  const userId = demandPerson(scope)
  const stateHash = hashState(state)
  const taken = await write(store, (tx) =>
    tx
      .deleteFrom('credentialConnects')
      .where('stateHash', '=', stateHash)
      .where('sessionId', '=', sessionId)
      .where('userId', '=', userId)
      .returning(['credentialId', 'sealed', sql<boolean>`expires_at > now()`.as('inTime')])
      .executeTakeFirst(),
  )
  if (!taken) throw await explainUnknown(store, stateHash)
  const { credentialId: id, sealed, inTime } = taken
  if (!inTime) throw new Fault('CONFLICT', `This took longer than ${CONNECT_MINUTES} minutes. ${AGAIN}`)
  const teamId = await readOwner(store, 'credentials', id)
  demand(scope, teamId, 'BUILDER')
  const grant = await readGrant(store, { id, teamId })
  demandConnectable(grant)
  const begun = openConnect(store.keys, nameConnect(id, stateHash), sealed)
  if (begun?.client !== printClient(grant)) throw changed()
  return { grant, verifier: begun.verifier }
}

/** Stores the tokens of a credential that has been connected (BUILDER). Throws CONFLICT if its client has changed. */
export async function finishConnect(scope: Scope, { grant }: Connecting, tokens: Tokens): Promise<void> {
  const { keys } = scope.store
  await change(scope, 'CREDENTIAL_CONNECTED', grant.teamId, async (tx) => {
    const now = await lockGrant(tx, keys, grant)
    if (printClient(now) !== printClient(grant)) throw changed()
    await setTokens(tx, keys, now, tokens, { renewed: false })
    const details = { name: now.name, refreshable: tokens.refreshToken !== null }
    return { result: undefined, resourceId: grant.id, details }
  })
}

/** Removes attempts that have expired. Called hourly. */
export async function purgeConnects(store: Store): Promise<void> {
  await record(store, async (tx) => {
    await sql`delete from credential_connects where expires_at <= now()`.execute(tx)
  })
}

const AGAIN = 'Go back to the credential, and connect it again'

function changed(): Fault {
  return new Fault('CONFLICT', `The credential was changed in the meantime. ${AGAIN}`)
}

async function explainUnknown({ db }: Store, stateHash: Buffer): Promise<Fault> {
  const elsewhere = await db
    .selectFrom('credentialConnects')
    .select('credentialId')
    .where('stateHash', '=', stateHash)
    .executeTakeFirst()
  if (elsewhere)
    return new Fault(
      'CONFLICT',
      `This was begun in another session: by somebody else, in another browser, or before you signed in anew. ${AGAIN}`,
    )
  return new Fault(
    'CONFLICT',
    `Nobody is expected back with this: it has been used already, is too old, or the credential is gone. Look whether the credential is connected; if it is not, connect it again`,
  )
}

function demandConnectable({ type, data }: Grant): void {
  if (type !== 'OAUTH2')
    throw new Fault('CONFLICT', `Only credentials of the type OAUTH2 are connected; this is ${type}`)
  const lacking = ['authorizationUrl', 'tokenUrl'].filter((key) => data[key] === undefined)
  if (lacking.length > 0)
    throw new Fault('CONFLICT', `To be connected, the credential needs ${lacking.join(' and ')}`)
}

/** A print of the client and its servers: an answer for another one is not taken (mix-up). */
function printClient({ data }: Grant): string {
  // Tokens must not come to where the person who connects did not agree to.
  const { directs } = credentialKind('OAUTH2')
  const values = ['clientId', 'clientSecret', ...directs].map((key) => data[key] ?? null)
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url')
}

function openConnect(
  keys: Keys,
  name: string,
  sealed: Buffer,
): { verifier: string; client: string } | undefined {
  try {
    return JSON.parse(unseal(keys, PURPOSE, name, sealed).toString())
  } catch {
    // Sealed with a key that is gone.
    return undefined
  }
}

function nameConnect(id: string, stateHash: Buffer): string {
  return `${id}|${stateHash.toString('hex')}`
}

function hashState(state: string): Buffer {
  return createHash('sha256').update(state).digest()
}
