import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { sql } from 'kysely'
import { record } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import { type Keys, purposeKey } from '../../seal.ts'
import { timeText } from '../times.ts'

/**
 * Checkpoints and anchors are signed with Ed25519, so that anyone can verify them. The private key follows from a
 * master key; the public ones stay in the database, so that signatures of an older key can be verified without it.
 */

/**
 * Public keys by the id of their master key: `key` is missing if it cannot be trusted, and `altered` says that its row
 * is not the one that this installation has kept.
 */
export type PublicKeys = Map<string, { key: KeyObject | undefined; altered: boolean }>

/** A public key as the API shows it: `publicKey` is PEM (SPKI). */
export type PublicKeyView = { keyId: string; algorithm: 'Ed25519'; publicKey: string; current: boolean }

type KeyRow = { keyId: string; publicKey: Buffer; createdAt: string; mac: Buffer; macKeyId: string }

const PURPOSE = 'audit-checkpoint'

/** The bytes before the 32 bytes of an Ed25519 key in PKCS #8 and in SPKI. */
const PRIVATE_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

const privateKeys = new WeakMap<KeyObject, KeyObject>()

function readPrivateKey(keys: Keys, keyId: string): KeyObject {
  const secret = purposeKey(keys, PURPOSE, keyId)
  let key = privateKeys.get(secret)
  if (!key) {
    const der = Buffer.concat([PRIVATE_HEAD, secret.export()])
    key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    privateKeys.set(secret, key)
  }
  return key
}

/** The public key that follows from a master key that is here. */
function derivePublicKey(keys: Keys, keyId: string): KeyObject {
  return createPublicKey(readPrivateKey(keys, keyId))
}

function toRaw(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_HEAD.length)
}

/** Signs a text with the key of a master key that is here. */
export function signPublicly(keys: Keys, keyId: string, text: string): Buffer {
  return sign(null, Buffer.from(text), readPrivateKey(keys, keyId))
}

/** Whether the text is signed with the key of that id, which is one of this installation. */
export function verifyPublicly(known: PublicKeys, keyId: string, text: string, signature: Buffer): boolean {
  const key = known.get(keyId)?.key
  return key !== undefined && verify(null, Buffer.from(text), key, signature)
}

/**
 * Keeps the public key of the current master key, before it signs anything, and moves the signatures of the others to
 * it, so that they are vouched for when older master keys are gone.
 */
export async function ensurePublicKey(tx: Tx, keys: Keys): Promise<void> {
  const rows = await readRows(tx)
  const keyId = keys.current
  if (!rows.some((row) => row.keyId === keyId)) {
    const row = { keyId, publicKey: toRaw(derivePublicKey(keys, keyId)), createdAt: new Date().toISOString() }
    await sql`insert into audit_public_keys (key_id, public_key, created_at, mac, mac_key_id)
      values (${keyId}, ${row.publicKey}, ${row.createdAt}::timestamptz, ${vouch(keys, keyId, row)}, ${keyId})
      on conflict do nothing`.execute(tx)
  }
  for (const row of rows) {
    if (row.macKeyId === keyId || !isVouched(keys, row)) continue
    await sql`update audit_public_keys set mac = ${vouch(keys, keyId, row)}, mac_key_id = ${keyId}
      where key_id = ${row.keyId} and mac = ${row.mac}`.execute(tx)
  }
}

/** Keeps the current public key, so that it is known from the first start on. */
export async function keepPublicKey(store: Store): Promise<void> {
  await record(store, (tx) => ensurePublicKey(tx, store.keys))
}

/**
 * The keys that verify: those of master keys that are here follow from them, and the rows of others are trusted if a
 * master key that is here vouches for them.
 */
export async function readPublicKeys(db: Db, keys: Keys): Promise<PublicKeys> {
  const known: PublicKeys = new Map()
  for (const row of await readRows(db)) {
    const { keyId, publicKey } = row
    const vouched = isVouched(keys, row)
    const key = keys.byId.has(keyId) ? derivePublicKey(keys, keyId) : vouched ? fromRaw(publicKey) : undefined
    known.set(keyId, { key, altered: !vouched || !key || !toRaw(key).equals(publicKey) })
  }
  const own = known.get(keys.current)?.key ?? derivePublicKey(keys, keys.current)
  known.set(keys.current, { key: own, altered: known.get(keys.current)?.altered ?? false })
  return known
}

/** The public keys for anyone who verifies checkpoints, the current one first. */
export async function listPublicKeys(store: Store): Promise<PublicKeyView[]> {
  const known = await readPublicKeys(store.db, store.keys)
  return [...known]
    .flatMap(([keyId, { key }]) => (key ? [{ keyId, key }] : []))
    .map(({ keyId, key }) => ({
      keyId,
      algorithm: 'Ed25519' as const,
      publicKey: key.export({ format: 'pem', type: 'spki' }).toString(),
      current: keyId === store.keys.current,
    }))
    .sort((a, b) => Number(b.current) - Number(a.current))
}

async function readRows(db: Db): Promise<KeyRow[]> {
  const { rows } = await sql<KeyRow>`
    select key_id, public_key, ${timeText('created_at')} as created_at,
      mac, mac_key_id
    from audit_public_keys order by audit_public_keys.created_at, key_id`.execute(db)
  return rows
}

function isVouched(keys: Keys, row: KeyRow): boolean {
  return keys.byId.has(row.macKeyId) && vouch(keys, row.macKeyId, row).equals(row.mac)
}

function vouch(keys: Keys, by: string, row: Pick<KeyRow, 'keyId' | 'publicKey' | 'createdAt'>): Buffer {
  const text = `public-key|${row.keyId}|${row.publicKey.toString('hex')}|${row.createdAt}`
  return createHmac('sha256', purposeKey(keys, 'audit', by))
    .update(text)
    .digest()
}

/** A key of 32 bytes; undefined if the bytes are not a key. */
function fromRaw(raw: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, raw]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}
