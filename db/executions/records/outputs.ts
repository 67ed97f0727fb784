import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { sql } from 'kysely'
import { type Envelope, INPUT_REF } from '../../../workflows/run/plan.ts'
import { write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import type { Store } from '../../scope.ts'
import { seal, unseal } from '../../seal.ts'
import { isDeeper } from './depth.ts'
import { type WrittenOutput, writeOutput } from './written.ts'

/** Deeper values would overflow the stack of something that reads them later, such as PostgreSQL. */
const MAX_DEPTH = 1_000

const PURPOSE = 'blob'
const gunzip = promisify(zlib.gunzip)

/**
 * Wraps an output as an envelope, to pass through Temporal: inline up to `inlineBytes` of JSON; a bigger one
 * is stored sealed in `blobs`, and only a reference passes. Throws RangeError if it is larger than
 * MAX_OUTPUT_BYTES or nested deeper than 1,000 levels. Undefined counts as null.
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
  return storeOutput(store, executionId, writeOutput(text, bytes))
}

/** Stores an output sealed in `blobs`, and returns the reference to it. */
export async function storeOutput(
  store: Store,
  executionId: string,
  { bytes, hash, zipped }: WrittenOutput,
): Promise<Envelope> {
  const sealed = seal(store.keys, PURPOSE, `${executionId}|${hash}`, zipped)
  await write(store, (tx) =>
    tx
      .insertInto('blobs')
      .values({ executionId, hash, bytes, sealed })
      .onConflict((oc) => oc.doNothing())
      .execute(),
  )
  return { ref: hash, bytes }
}

function writeJson(output: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(output) ?? 'null'
  } catch {
    // The stack overflowed, or the JSON is longer than a string can be. Both are reported below.
  }
  if (text !== undefined && !isDeeper(text, MAX_DEPTH)) return text
  const what = text === undefined ? 'too big, or nested deeper than' : 'nested deeper than'
  throw new RangeError(`The output is ${what} ${MAX_DEPTH} levels`)
}

/**
 * Copies stored outputs from one execution to another, whose row need not exist before the transaction ends.
 * Each copy is sealed anew, because the seal names the execution. Throws NOT_FOUND if one no longer exists.
 */
export async function copyOutputs(
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
    if (!blob) throw new Fault('NOT_FOUND', `The stored output ${hash.slice(0, 12)} no longer exists`)
    const plain = unseal(keys, PURPOSE, `${from}|${hash}`, blob.sealed)
    const sealed = seal(keys, PURPOSE, `${to}|${hash}`, plain)
    await tx
      .insertInto('blobs')
      .values({ executionId: to, hash, bytes: blob.bytes, sealed })
      .onConflict((oc) => oc.doNothing())
      .execute()
  }
}

/** The value in an envelope. Throws NOT_FOUND if it is stored and has been deleted with its execution. */
export async function openEnvelope(store: Store, executionId: string, envelope: Envelope): Promise<unknown> {
  return 'v' in envelope ? envelope.v : JSON.parse(await readStored(store, executionId, envelope.ref))
}

/** The same value as its JSON, for those who parse it in turns with others. It must be stored. */
export async function readStored(store: Store, executionId: string, ref: string): Promise<string> {
  if (ref === INPUT_REF) {
    const row = await store.db
      .selectFrom('executions')
      .select(sql<string>`input_data::text`.as('json'))
      .where('id', '=', executionId)
      .executeTakeFirst()
    if (!row) throw new Fault('NOT_FOUND', 'The execution has been deleted')
    return row.json
  }
  const row = await store.db
    .selectFrom('blobs')
    .select('sealed')
    .where('executionId', '=', executionId)
    .where('hash', '=', ref)
    .executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', `The stored output ${ref.slice(0, 12)} no longer exists`)
  const plain = unseal(store.keys, PURPOSE, `${executionId}|${ref}`, row.sealed)
  return (await gunzip(plain)).toString()
}
