import type { Logger } from 'pino'

export type TracingOptions = {
  /** The collector's address for traces (OTLP over HTTP, protobuf), such as http://localhost:4318/v1/traces. */
  url: string
  sampler: SamplerName
  /** For the ratio samplers, 0 to 1. */
  ratio: number
  /** How often spans are sent; tests do not wait a second. */
  everyMs?: number
}

export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof SAMPLERS)[number]

type Attributes = Record<string, string | number | boolean>

export type Span = {
  /** What a child names as its parent, and what goes out in the W3C header of that name. */
  traceparent: string
  /** `failure` is a type or a status, never a message; `at` is epoch milliseconds. */
  end(outcome?: { failure?: string | undefined; at?: number; attributes?: Attributes }): void
}

export type Tracing = {
  /** `parent` is a traceparent; without a valid one the span begins a trace. `id` is 16 hexadecimal digits. */
  begin(
    name: string,
    options: {
      kind: 'server' | 'client' | 'internal'
      parent?: string | undefined
      id?: string
      at?: number
      attributes?: Attributes
    },
  ): Span
  /** Sends what has ended; waits a second and a half at most. Then no span is taken any more. */
  stop(): Promise<void>
}

const EVERY_MS = 1_000
const STOP_MS = 1_500
const SAID_EVERY_MS = 60_000

/**
 * Spans for an OpenTelemetry collector. Loaded only where one is configured; everybody else finds no Tracing and
 * does nothing. Parents are named by hand, as traceparents: a run outlives every process, so no context that
 * lives in one could carry it. Service name, headers, TLS and time limits are the SDK's own OTEL_ variables.
 */
export async function startTracing(options: TracingOptions, log: Logger): Promise<Tracing> {
  const [api, core, sdk, resources, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ])
  const kinds = { server: api.SpanKind.SERVER, client: api.SpanKind.CLIENT, internal: api.SpanKind.INTERNAL }
  const random = new sdk.RandomIdGenerator()
  let wanted: string | undefined
  const exporter = new OTLPTraceExporter({ url: options.url })
  const provider = new sdk.TracerProvider({
    resource: resources
      .resourceFromAttributes({ 'service.name': 'perdure', 'process.pid': process.pid })
      .merge(
        resources.detectResources({
          detectors: [resources.resourceAttributesEnvDetector, resources.serviceNameEnvDetector],
        }),
      ),
    sampler: createSampler(sdk, options),
    idGenerator: {
      generateTraceId: () => random.generateTraceId(),
      generateSpanId: () => wanted ?? random.generateSpanId(),
    },
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: tellOfFailures(exporter, log),
        scheduledDelayMillis: options.everyMs ?? EVERY_MS,
        maxQueueSize: 16_384,
        maxExportBatchSize: 1_024,
      }),
    ],
  })
  const tracer = provider.getTracer('perdure')

  return {
    begin(name, { kind, parent, id, at, attributes }) {
      const given = parent === undefined ? null : core.parseTraceParent(parent)
      const context = given
        ? api.trace.setSpanContext(api.ROOT_CONTEXT, { ...given, isRemote: true })
        : api.ROOT_CONTEXT
      wanted = id
      const span = tracer.startSpan(
        name,
        {
          kind: kinds[kind],
          ...(at === undefined ? {} : { startTime: at }),
          ...(attributes ? { attributes } : {}),
        },
        context,
      )
      wanted = undefined
      const { traceId, spanId, traceFlags } = span.spanContext()
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        end({ failure, at: ended, attributes: more } = {}) {
          if (more) span.setAttributes(more)
          if (failure !== undefined) {
            span.setAttribute('error.type', failure)
            span.setStatus({ code: api.SpanStatusCode.ERROR })
          }
          span.end(ended)
        },
      }
    },
    async stop() {
      const late = new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())
      await Promise.race([provider.shutdown().catch(() => {}), late])
    },
  }
}

/** The span that stands for a whole run, known before it is made: nodes end long before their run does. */
export function runSpanId(executionId: string): string {
  return executionId.replaceAll('-', '').slice(-16)
}

/** What the nodes of a run name as their parent, from the traceparent of the request that it was accepted by. */
export function runTraceparent(accepted: string, executionId: string): string {
  const [version, traceId, , flags] = accepted.split('-')
  return `${version}-${traceId}-${runSpanId(executionId)}-${flags}`
}

type Sdk = typeof import('@opentelemetry/sdk-trace')

function createSampler(sdk: Sdk, { sampler, ratio }: TracingOptions) {
  const name = sampler.replace('parentbased_', '')
  const root =
    name === 'always_on'
      ? new sdk.AlwaysOnSampler()
      : name === 'always_off'
        ? new sdk.AlwaysOffSampler()
        : new sdk.TraceIdRatioBasedSampler(ratio)
  return sampler.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root
}

type Exporter = import('@opentelemetry/sdk-trace').SpanExporter

/** A collector that is away costs its spans and one warning a minute. */
function tellOfFailures(exporter: Exporter, log: Logger): Exporter {
  let saidAt = 0
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== 0 && Date.now() - saidAt > SAID_EVERY_MS) {
          saidAt = Date.now()
          log.warn({ err: result.error, spans: spans.length }, 'the collector did not take the spans')
        }
        // Told already: a failure would go to the SDK's own log as well.
        done({ code: 0 })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}
