import type { Logger } from 'pino'

export type TracingOptions = {
  /** The collector's URL for traces (OTLP over HTTP, protobuf), such as http://localhost:4318/v1/traces. */
  url: string
  sampler: SamplerName
  /** The share of traces that the ratio samplers keep, from 0 to 1. */
  ratio: number
  /** How often spans are sent, in milliseconds: every second by default, more often in tests. */
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
type SamplerName = (typeof SAMPLERS)[number]

type Attributes = Record<string, string | number | boolean>

export type TracedSpan = {
  /** Names this span as a parent, also in the W3C header `traceparent` of outgoing requests. */
  traceparent: string
  /** What goes with it in the W3C header `tracestate`; undefined if there is nothing. */
  tracestate: string | undefined
  /** `failure` is a type or a status, never a message; `at` is epoch milliseconds. */
  end(outcome?: { failure?: string | undefined; at?: number; attributes?: Attributes }): void
}

export type Tracing = {
  /**
   * `parent` is a traceparent; without a valid one the span begins a new trace. `state` is its tracestate, of
   * which what is invalid or beyond 512 characters is dropped. `id` is the span's id, 16 hexadecimal digits,
   * random by default. `at` is epoch milliseconds, now by default.
   */
  begin(
    name: string,
    options: {
      kind: 'server' | 'client' | 'internal'
      parent?: string | undefined
      state?: string | undefined
      id?: string
      at?: number
      attributes?: Attributes
    },
  ): TracedSpan
  /** Sends the spans that have ended, for at most 1.5 seconds. Spans that end afterwards are lost. */
  stop(): Promise<void>
}

const EVERY_MS = 1_000
const STOP_MS = 1_500
const WARN_EVERY_MS = 60_000

/**
 * Starts sending spans to an OpenTelemetry collector. The SDK is loaded only if a collector is configured;
 * without one the callers have no Tracing and make no spans. Parents are passed explicitly, as traceparents:
 * a run outlives every process, so a context kept in a process could not carry them. Service name, headers,
 * TLS and timeouts come from the SDK's own OTEL_ variables.
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
  let givenSpanId: string | undefined
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
      generateSpanId: () => givenSpanId ?? random.generateSpanId(),
    },
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: warnOfFailures(exporter, log),
        scheduledDelayMillis: options.everyMs ?? EVERY_MS,
        maxQueueSize: 16_384,
        maxExportBatchSize: 1_024,
      }),
    ],
  })
  const tracer = provider.getTracer('perdure')

  return {
    begin(name, { kind, parent, state, id, at, attributes }) {
      const given = parent === undefined ? null : core.parseTraceParent(parent)
      const kept = state ? { traceState: api.createTraceState(state) } : {}
      const context = given
        ? api.trace.setSpanContext(api.ROOT_CONTEXT, { ...given, ...kept, isRemote: true })
        : api.ROOT_CONTEXT
      givenSpanId = id
      const span = tracer.startSpan(
        name,
        {
          kind: kinds[kind],
          ...(at === undefined ? {} : { startTime: at }),
          ...(attributes ? { attributes } : {}),
        },
        context,
      )
      givenSpanId = undefined
      const { traceId, spanId, traceFlags, traceState } = span.spanContext()
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        tracestate: traceState?.serialize() || undefined,
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

/** The ids in a traceparent, for logs; none if it is not valid. */
export function readTraceIds(
  traceparent: string | undefined,
): { traceId: string; spanId: string } | undefined {
  const found = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/.exec(traceparent ?? '')
  const [, traceId, spanId] = found ?? []
  return traceId === undefined || /^0+$/.test(traceId) ? undefined : { traceId, spanId: spanId! }
}

/**
 * The id of the span for a whole run. It follows from the execution's id, because the spans of nodes name it
 * as their parent long before the run ends and its own span is made.
 */
export function runSpanId(executionId: string): string {
  return executionId.replaceAll('-', '').slice(-16)
}

/**
 * The traceparent that the spans of a run's nodes have as their parent. `accepted` is the traceparent of the
 * request that started the execution.
 */
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

/** If the collector cannot be reached, its spans are lost and one warning a minute is logged. */
function warnOfFailures(exporter: Exporter, log: Logger): Exporter {
  let warnedAt = 0
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== 0 && Date.now() - warnedAt > WARN_EVERY_MS) {
          warnedAt = Date.now()
          log.warn({ err: result.error, spans: spans.length }, 'the collector did not take the spans')
        }
        // Reported as a success, because the SDK would log a failure a second time.
        done({ code: 0 })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}
