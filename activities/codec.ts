import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'
import type { Keys } from '../db/seal.ts'
import { seal, unseal } from '../db/seal.ts'

const ENCODING = Buffer.from('binary/encrypted')
const PURPOSE = 'temporal'

/** Seals every payload that Temporal keeps (AES-256-GCM, the service's key), without any I/O. */
function createCodec(keys: Keys): PayloadCodec {
  return {
    encode: async (payloads) => payloads.map((payload) => sealPayload(keys, payload)),
    decode: async (payloads) => payloads.map((payload) => openPayload(keys, payload)),
  }
}

function sealPayload(keys: Keys, payload: Payload): Payload {
  const bytes = proto.temporal.api.common.v1.Payload.encode(payload).finish()
  return { metadata: { encoding: ENCODING }, data: seal(keys, PURPOSE, '', bytes) }
}

/** A payload that is not sealed (a recorded history, a marker's own header) passes as it is. */
export function openPayload(keys: Keys, payload: Payload): Payload {
  const encoding = payload.metadata?.encoding
  if (!encoding || !ENCODING.equals(encoding)) return payload
  return proto.temporal.api.common.v1.Payload.decode(
    unseal(keys, PURPOSE, '', payload.data ?? new Uint8Array()),
  )
}

/** The value of a JSON payload, or undefined for none and for null payloads. */
export function readPayload(keys: Keys, payload: Payload | null | undefined): unknown {
  if (!payload) return undefined
  const { data } = openPayload(keys, payload)
  return data && data.length > 0 ? JSON.parse(Buffer.from(data).toString()) : undefined
}

/** What clients and workers share: sealed payloads, and failures whose message and stack are sealed too. */
export function createDataConverter(keys: Keys): DataConverter {
  return { payloadCodecs: [createCodec(keys)], failureConverterPath: FAILURE_CONVERTER }
}

/** Replays of recorded histories, which are stored opened, need the failure converter alone. */
export const FAILURE_CONVERTER = new URL('../workflows/failures.ts', import.meta.url).pathname
