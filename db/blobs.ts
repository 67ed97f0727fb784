import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import { type Envelope, INPUT_REF } from '../workflows/plan.ts'
import { isDeeper } from './depth.ts'
import { Fault } from './fault.ts'
import type { Store, Tx } from './scope.ts'
import { seal, unseal } from './seal.ts'

export const MAX_OUTPUT_BYTES = 8_000_000
/** Deeper values would overflow the stack of one of those who read them next, PostgreSQL among them. */
const MAX_DEPTH = 1_000

const PURPOSE = 'blob'

/**
 * Wraps an output for its way through Temporal: inline up to `inlineBytes` of JSON, else sealed in `blobs` with
 * only a reference travelling. Throws RangeError above MAX_OUTPUT_BYTES and MAX_DEPTH. Undefined counts as null.
 */
export async function packOutput(
  store: Store,
  executionId: string,
  output: unknown,
  inlineBytes: number,
): Promise<Envelope> {
  const text = writeJson(output)
  const bytes = Buffer.byteLength(text)
  if (bytes <= inlineBytes) return { v: output ?? null, bytes }
  if (bytes > MAX_OUTPUT_BYTES) {
    throw new RangeError(`The output has ${bytes} bytes; at most ${MAX_OUTPUT_BYTES} are allowed`)
  }
  const hash = createHash('sha256').update(text).digest('hex')
  const sealed = seal(store.keys, PURPOSE, `${executionId}|${hash}`, gzipSync(text, { level: 1 }))
  await store.db
    .insertInto('blobs')
    .values({ executionId, hash, bytes, sealed })
    .onConflict((oc) => oc.doNothing())
    .execute()
  return { ref: hash, bytes }
}

function writeJson(output: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(output) ?? 'null'
  } catch {
    // The stack ran out, or the text grew beyond what a string can hold; both are told below.
  }
  if (text !== undefined && !isDeeper(text, MAX_DEPTH)) return text
  const what = text === undefined ? 'too big, or nested deeper than' : 'nested deeper than'
  throw new RangeError(`The output is ${what} ${MAX_DEPTH} levels`)
}

/**
 * Copies big outputs for another execution, whose row need not be there before the transaction ends: each is sealed
 * for the one it belongs to. Throws NOT_FOUND for one that is gone.
 */
export async function copyBlobs(
  tx: Tx,
  { keys }: Pick<Store, 'keys'>,
  from: string,
  to: string,
  hashes: Iterable<string>,
): Promise<void> {
  await sql`set constraints blobs_execution_id_fkey deferred`.execute(tx)
  for (const hash of hashes) {
    const blob = await tx
      .selectFrom('blobs')
      .select(['bytes', 'sealed'])
      .where('executionId', '=', from)
      .where('hash', '=', hash)
      .executeTakeFirst()
    if (!blob) throw new Fault('NOT_FOUND', `The stored output ${hash.slice(0, 12)} is gone`)
    const plain = unseal(keys, PURPOSE, `${from}|${hash}`, blob.sealed)
    const sealed = seal(keys, PURPOSE, `${to}|${hash}`, plain)
    await tx
      .insertInto('blobs')
      .values({ executionId: to, hash, bytes: blob.bytes, sealed })
      .onConflict((oc) => oc.doNothing())
      .execute()
  }
}

/** The value behind an envelope; NOT_FOUND where its blob went with its execution. */
export async function openEnvelope(store: Store, executionId: string, envelope: Envelope): Promise<unknown> {
  if ('v' in envelope) return envelope.v
  if (envelope.ref === INPUT_REF) {
    const row = await store.db
      .selectFrom('executions')
      .select('inputData')
      .where('id', '=', executionId)
      .executeTakeFirst()
    if (!row) throw new Fault('NOT_FOUND', 'The execution is deleted')
    return row.inputData
  }
  const row = await store.db
    .selectFrom('blobs')
    .select('sealed')
    .where('executionId', '=', executionId)
    .where('hash', '=', envelope.ref)
    .executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', `The stored output ${envelope.ref.slice(0, 12)} is gone`)
  const plain = unseal(store.keys, PURPOSE, `${executionId}|${envelope.ref}`, row.sealed)
  return JSON.parse(gunzipSync(plain).toString())
}
