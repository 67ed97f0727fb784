import type { DataConverter, Payload, PayloadCodec, SerializationContext } from '@temporalio/common'
import proto from '@temporalio/proto'
import { BOUND } from '../../db/operation/seals.ts'
import { PLAIN, readSeal, seal, unseal } from '../../db/seal.ts'
import { refuse } from '../../workflows/run/messages.ts'
import { nameSealed, type Sealer } from './sealer.ts'

// Temporal's APIs take payloads from every client that reaches them. So each payload is sealed with a key
// that only the service has, and bound to its place:
//
// - Everything that belongs to an execution's run, to its whole chain of runs, is bound to the namespace and
//   the execution's id: input, what goes to activities and comes back, heartbeats, signals, failures,
//   summaries of timers, what the next run of the chain is given.
// - What belongs to the firings of a schedule is bound to the schedule's id. The id of a firing is that and
//   its time, which is unknown when the schedule is made, and each firing is shown the last one's result.
// - The run that a firing starts is an execution's, and bound to its own id.
//
// Within a run, one payload can be put in the place of another; what reads them checks their form. Temporal's
// headers and search attributes are never opened, because nothing reads them.

const ENCODING = Buffer.from('binary/encrypted')
const PURPOSE = 'temporal'

/** Where a payload belongs, as Temporal's SDK says when it seals or opens one. */
export type SealPlace = Pick<SerializationContext, 'namespace' | 'workflowId'>

/**
 * Seals every payload that Temporal stores (AES-256-GCM with the service's key), without any I/O. Opening a
 * payload never fails because of what it is, since Temporal would repeat that for ever: one that was not
 * sealed for its place is replaced by a `Refused`, which ends the run where it is read, or is ignored.
 */
function createCodec(sealer: Sealer): PayloadCodec {
  return {
    encode: async (payloads, place) => payloads.map((payload) => sealPayload(sealer, place, payload)),
    decode: (payloads, place) => Promise.all(payloads.map((payload) => openPayload(sealer, place, payload))),
  }
}

function sealPayload(sealer: Sealer, place: SealPlace | undefined, payload: Payload): Payload {
  const bytes = proto.temporal.api.common.v1.Payload.encode(payload).finish()
  const data = sealer.binds()
    ? seal(sealer.keys, PURPOSE, describePlace(place), bytes, BOUND)
    : seal(sealer.keys, PURPOSE, '', bytes)
  return { metadata: { encoding: ENCODING }, data }
}

/** What a bound payload is bound to. */
function describePlace(place: SealPlace | undefined): string {
  return `${place?.namespace ?? ''}\0${nameSealed(place?.workflowId ?? '')}`
}

/**
 * Opens a payload, or returns a `Refused` in its place. Throws only if another process may be able to open it,
 * or while the database that says so is away.
 */
export async function openPayload(
  sealer: Sealer,
  place: SealPlace | undefined,
  payload: Payload,
): Promise<Payload> {
  const workflowId = place?.workflowId ?? ''
  const { data } = payload
  const refused = (reason: string) => {
    sealer.note(workflowId, reason)
    return toPayload(refuse(reason))
  }
  const made = isSealed(payload) && data ? readSeal(data) : undefined
  if (!data || (made?.version !== BOUND && made?.version !== PLAIN)) return refused('it is not sealed')
  const { version, keyId } = made
  if (!sealer.keys.byId.has(keyId)) {
    if (KEY_ID.test(keyId) && (await sealer.isKey(keyId))) throw new Error(`PERDURE_KEYS has no key ${keyId}`)
    return refused('it is sealed with a key that is not ours')
  }
  if (version === PLAIN && !(await sealer.mayBeUnbound(workflowId)))
    return refused('it is not bound to a run, as it should be in a run that began this late')
  try {
    const context = version === BOUND ? describePlace(place) : ''
    const bytes = unseal(sealer.keys, PURPOSE, context, data, version)
    return proto.temporal.api.common.v1.Payload.decode(bytes)
  } catch {
    return refused('it was sealed for another run, or altered')
  }
}

/** Whether a payload says that it is sealed. */
export function isSealed({ metadata }: Payload): boolean {
  return metadata?.encoding ? ENCODING.equals(metadata.encoding) : false
}

const KEY_ID = /^[\w-]{1,8}$/

function toPayload(value: unknown): Payload {
  return { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from(JSON.stringify(value)) }
}

/** How the payloads of a history are opened. Recorded histories, which only tests have, are not sealed. */
export type Opener = (payload: Payload) => Payload | Promise<Payload>

/** The value of a JSON payload; undefined if there is no payload or it has no data. */
export async function readPayload(open: Opener, payload: Payload | null | undefined): Promise<unknown> {
  if (!payload) return undefined
  const { data } = await open(payload)
  return data && data.length > 0 ? JSON.parse(Buffer.from(data).toString()) : undefined
}

/** The data converter of clients and workers: seals payloads, and the messages and stacks of failures too. */
export function createDataConverter(sealer: Sealer): DataConverter {
  return { payloadCodecs: [createCodec(sealer)], failureConverterPath: FAILURE_CONVERTER }
}

/** The failure converter. Replays of recorded histories, which are stored unsealed, need only this. */
export const FAILURE_CONVERTER = new URL('../../workflows/run/converter.ts', import.meta.url).pathname
