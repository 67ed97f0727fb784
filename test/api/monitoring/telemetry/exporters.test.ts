import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import { CHAT } from '../../../support/monitoring/usage/spans.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService())
const url = `${await service.listen()}/api/telemetry/v1/traces`

/** Every exporter of OpenTelemetry for JavaScript over HTTP, with and without compression. */
const EXPORTERS = [
  ['JSON', JsonExporter, undefined],
  ['JSON, gzip', JsonExporter, 'gzip'],
  ['protobuf', ProtobufExporter, undefined],
  ['protobuf, gzip', ProtobufExporter, 'gzip'],
] as const

test.each(EXPORTERS)(
  "OpenTelemetry's own exporter delivers usage: %s",
  async (_name, Exporter, compression) => {
    const team = await service.otherTeam()
    const token = await service.token('OPERATOR', team.cookie, team.teamId)
    const exporter = new Exporter({
      url,
      headers: { authorization: `Bearer ${token}` },
      ...(compression ? { compression } : {}),
    } as ConstructorParameters<typeof Exporter>[0])
    const results: { code: number; error?: Error }[] = []
    const watched: SpanExporter = {
      export: (spans, done) =>
        exporter.export(spans as never, (result) => {
          results.push(result)
          done(result)
        }),
      shutdown: () => exporter.shutdown(),
    }
    const provider = new TracerProvider({
      resource: resourceFromAttributes({ 'service.name': 'support-bot' }),
      spanProcessors: [new BatchSpanProcessor({ exporter: watched })],
    })
    const tracer = provider.getTracer('test')
    const now = Date.now()
    const call = (startTime: number, attributes: Record<string, string | number>, failed = false) => {
      const span = tracer.startSpan('chat gpt-4o', { kind: SpanKind.CLIENT, startTime, attributes })
      span.addEvent('gen_ai.content.prompt', { 'gen_ai.prompt': 'a prompt' })
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR, message: 'a message' })
      span.end(startTime + 1_500)
    }
    for (let n = 0; n < 20; n++) call(now - 10_000, CHAT)
    call(now - 10_000, { ...CHAT, 'error.type': '500' }, true)
    // Too old: the rest of the batch still counts.
    call(now - 40 * 86_400_000, CHAT)
    await provider.shutdown()
    expect(results.map(({ code, error }) => ({ code, error }))).toEqual([{ code: 0, error: undefined }])

    const read = async (path: string) =>
      (await service.call('GET', `/api/monitoring/teams/${team.teamId}/${path}`, team.cookie)).body
    expect(await read('token-usage')).toMatchObject({
      calls: 21,
      totalInputTokens: 21_000,
      totalOutputTokens: 2_100,
    })
    const { services, operations } = await read('telemetry')
    expect(services).toMatchObject([{ service: 'support-bot', calls: 21, errors: 1, inputTokens: 21_000 }])
    expect(operations).toMatchObject([{ operation: 'chat', calls: 21, errors: 1 }])
    expect(Math.abs(operations[0].p95Ms - 1_500)).toBeLessThan(375)
  },
)
