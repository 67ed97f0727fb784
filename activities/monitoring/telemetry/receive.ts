import { storeTelemetry } from '../../../db/monitoring/telemetry/spans.ts'
import { findModelPrices, type ModelPrice } from '../../../db/monitoring/usage/prices.ts'
import type { Scope } from '../../../db/scope.ts'
import { type Work, workInTurns } from '../../../workflows/turns.ts'
import { priceCall } from '../../models/prices.ts'
import { type CollectedSpan, createCollector } from './collect.ts'
import { readJsonSpans } from './json.ts'
import { readProtobufSpans } from './protobuf.ts'
import { MalformedBatch } from './rawspan.ts'

/** The encodings of OTLP over HTTP. */
export type OtlpEncoding = 'json' | 'protobuf'

/** How many spans of a batch were rejected, and why: of each reason how many, without anything of their texts. */
export type TelemetryReceipt = { rejected: number; errorMessage: string }

/** What the price of one call takes to find, in units of work. */
const PRICE_UNITS = 40

/**
 * Takes in a batch of spans for a team (OPERATOR): what they say of calls to models, agents and tools is stored, each span
 * once, and nothing else of them. The body is read in turns with other teams' work. Throws MalformedBatch, and as
 * storeTelemetry does.
 */
export async function receiveSpans(
  scope: Scope,
  teamId: string,
  { encoding, bytes }: { encoding: OtlpEncoding; bytes: Buffer },
): Promise<TelemetryReceipt> {
  const collector = createCollector(Date.now())
  const work =
    encoding === 'json' ? readJsonSpans(decodeText(bytes), collector) : readProtobufSpans(bytes, collector)
  await workInTurns(work, teamId)
  const { spans, rejected, errorMessage } = collector.finish()
  if (spans.length > 0) {
    const own = await findModelPrices(scope.store, teamId)
    await workInTurns(priceCalls(spans, own), teamId)
    await storeTelemetry(
      scope,
      teamId,
      spans.map(({ span }) => span),
    )
  }
  return { rejected, errorMessage }
}

/** An empty body is an empty batch, as it is in protobuf. */
function decodeText(bytes: Buffer): string {
  if (bytes.length === 0) return '{}'
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new MalformedBatch('The body is no valid JSON: it is not UTF-8')
  }
}

function* priceCalls(spans: CollectedSpan[], own: ModelPrice[]): Work<void> {
  for (const { span, baseUrl } of spans) {
    const { call, provider, model, startedAt: at } = span
    if (!call?.tokens || call.status !== 'SUCCESS') continue
    yield PRICE_UNITS
    const priced = priceCall({ provider, model, baseUrl }, call.tokens, { own, at })
    call.cost = priced ? priced.cost.toFixed(10) : null
    call.price = priced ? priced.price : null
  }
}
