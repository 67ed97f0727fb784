import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'
import type { Keys } from '../../db/seal.ts'
import { seal, unseal } from '../../db/seal.ts'

const ENCODING = Buffer.from('binary/encrypted')
const PURPOSE = 'temporal'

/** Seals every payload that Temporal stores (AES-256-GCM with the service's key), without any I/O. */
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

/** Opens a payload. An unsealed one (of a recorded history, a marker's own header) is returned as it is. */
export function openPayload(keys: Keys, payload: Payload): Payload {
  const encoding = payload.metadata?.encoding
  if (!encoding || !ENCODING.equals(encoding)) return payload
  return proto.temporal.api.common.v1.Payload.decode(
    unseal(keys, PURPOSE, '', payload.data ?? new Uint8Array()),
  )
}

/** The value of a JSON payload, sealed or not; undefined if there is no payload or it has no data. */
export function readPayload(keys: Keys, payload: Payload | null | undefined): unknown {
  if (!payload) return undefined
  const { data } = openPayload(keys, payload)
  return data && data.length > 0 ? JSON.parse(Buffer.from(data).toString()) : undefined
}

/** The data converter of clients and workers: seals payloads, and the messages and stacks of failures too. */
export function createDataConverter(keys: Keys): DataConverter {
  return { payloadCodecs: [createCodec(keys)], failureConverterPath: FAILURE_CONVERTER }
}

/** The failure converter. Replays of recorded histories, which are stored unsealed, need only this. */
export const FAILURE_CONVERTER = new URL('../../workflows/run/converter.ts', import.meta.url).pathname
