import { sql } from 'kysely'
import { write } from '../change.ts'
import { openCredential } from '../credentials/seal.ts'
import type { CredentialType } from '../credentials/types.ts'
import type { Store } from '../scope.ts'
import { type Keys, readSeal, seal, unseal } from '../seal.ts'

const PURPOSE = 'key proof'
/** What the proofs seal: it says nothing about the key. */
const PROOF = Buffer.from('perdure')

/** The number of sealed values that are tried with a key that has no proof yet. */
const SAMPLES = 5

/**
 * Says what is wrong with the keys of a process: one has other bytes than the one that the installation has used under
 * its id, or one is missing that credentials need. Keys that are new to the installation are noted with a proof, by
 * which later processes are judged. Empty if all is well.
 */
export async function findKeyFaults(store: Store): Promise<string[]> {
  const ids = [...store.keys.byId.keys()]
  const faults: string[] = []
  for (const id of ids.sort()) {
    if ((await judgeKey(store, id)) !== false && (await noteProof(store, id))) continue
    faults.push(
      `The key ${id} (of PERDURE_KEYS, else of keys.json in DATA_DIR) has other bytes than the key that this ` +
        'installation has used under this id: set the right one, and give a new key an id of its own',
    )
  }
  for (const { keyId, count } of await countCredentialKeys(store)) {
    if (store.keys.byId.has(keyId)) continue
    faults.push(
      `The key ${keyId} is missing (in PERDURE_KEYS, else in keys.json in DATA_DIR): ${count} credentials are sealed ` +
        'with it. Add it behind the first one; once `npx perdure keys rotate` has run with both, they no longer need it',
    )
  }
  return faults
}

/** How many credentials are sealed with each key. */
export async function countCredentialKeys(store: Store): Promise<{ keyId: string; count: number }[]> {
  const { rows } = await sql<{ keyId: string; count: number }>`
    select key_id, count(*) as count from credentials group by key_id order by key_id`.execute(store.db)
  return rows
}

/** Whether a key of this process is the one that the installation has used under its id; undefined if nothing tells. */
export async function judgeKey(store: Store, id: string): Promise<boolean | undefined> {
  const known = await store.db.selectFrom('sealKeys').select('proof').where('id', '=', id).executeTakeFirst()
  // Without a proof, noted by a process of the release before or never: what is sealed has to tell.
  return known?.proof ? proves(store.keys, id, known.proof) : tryKey(store, id)
}

async function noteProof(store: Store, id: string): Promise<boolean> {
  const own = seal(chooseKey(store.keys, id), PURPOSE, id, PROOF)
  // If two processes note different keys at once, the later one finds the proof of the first.
  const { rows } = await write(store, (tx) =>
    sql<{ proof: Buffer }>`insert into seal_keys (id, proof) values (${id}, ${own})
      on conflict (id) do update set proof = coalesce(seal_keys.proof, excluded.proof) returning proof`.execute(
      tx,
    ),
  )
  return proves(store.keys, id, rows[0]!.proof)
}

function proves(keys: Keys, id: string, proof: Buffer): boolean {
  return opens(() => readSeal(proof)?.keyId === id && unseal(keys, PURPOSE, id, proof))
}

function chooseKey(keys: Keys, current: string): Keys {
  return { ...keys, current }
}

/** Whether a key opens something that names it; undefined if nothing was found that does. */
async function tryKey({ db, keys }: Store, id: string): Promise<boolean | undefined> {
  const credentials = await db
    .selectFrom('credentials')
    .select(['id', 'teamId', 'type', 'sealed', 'wrapped'])
    .where('keyId', '=', id)
    .limit(SAMPLES)
    .execute()
  const tried = credentials.map(({ sealed, wrapped, type, ...place }) =>
    opens(() => openCredential(keys, { ...place, type: type as CredentialType }, { sealed, wrapped })),
  )
  if (tried.length === 0) {
    const blobs = await db
      .selectFrom('blobs')
      .select(['executionId', 'hash', 'sealed'])
      .limit(SAMPLES)
      .execute()
    const named = blobs.filter(({ sealed }) => readSeal(sealed)?.keyId === id)
    tried.push(
      ...named.map((blob) =>
        opens(() => unseal(keys, 'blob', `${blob.executionId}|${blob.hash}`, blob.sealed)),
      ),
    )
  }
  return tried.length === 0 ? undefined : tried.some(Boolean)
}

function opens(work: () => unknown): boolean {
  try {
    return work() !== false
  } catch {
    return false
  }
}
