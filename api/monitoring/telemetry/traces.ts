import { Hono } from 'hono'
import * as v from 'valibot'
import { MalformedBatch } from '../../../activities/monitoring/telemetry/rawspan.ts'
import { receiveSpans } from '../../../activities/monitoring/telemetry/receive.ts'
import { Fault, invalid } from '../../../db/fault.ts'
import { demandTeam, type Scope } from '../../../db/scope.ts'
import { FAULTS } from '../../docs/faults.ts'
import type { AppEnv } from '../../env.ts'
import { createSeats } from '../../executions/seats.ts'
import { accept } from '../../http/accept.ts'
import { uuidField } from '../../http/fields.ts'
import { answerReceipt, findEncoding, otlpFault, PROTOBUF, ReceiptSchema, showOtlpError } from './answers.ts'
import { readBatchBytes } from './otlpbody.ts'

/** How many batches one process takes in at once, and from one team: each holds several megabytes at most. */
const BATCHES = { ofPerson: 8, ofTeam: 8, ofAll: 32 }

const OwnTeam = v.object({
  teamId: v.pipe(
    v.optional(uuidField),
    v.description('An SDK token has one team, so only a session has to name it'),
  ),
})

const TracesSchema = v.pipe(
  // In protobuf's JSON a field that is null is one that is not there.
  v.object({ resourceSpans: v.optional(v.nullable(v.array(v.looseObject({})))) }),
  v.title('ExportTraceServiceRequest'),
  v.description('See opentelemetry-proto, in its JSON encoding'),
)

const EXAMPLE = {
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'support-bot' } }] },
      scopeSpans: [{ spans: [] }],
    },
  ],
}

/** The route that takes in traces of agents outside of this service, as OpenTelemetry's exporters send them. */
export function createTraceRoutes() {
  const seats = createSeats('batches of spans', BATCHES)
  return new Hono<AppEnv>().post(
    '/api/telemetry/v1/traces',
    accept({
      id: 'receiveTraces',
      tag: 'Monitoring',
      summary: 'Take in traces of agents elsewhere',
      description:
        'OTLP over HTTP, in protobuf or JSON, plain or with gzip, at most 4 MiB decompressed. Of spans with attributes of ' +
        'the GenAI semantic conventions, the calls to models become usage of the team, and errors and latency are ' +
        'counted. All others are accepted, and not stored. Messages, prompts and what tools were given are dropped ' +
        'before anything is stored. A span counts once, however often it is sent in 30 days. Errors are a ' +
        '`google.rpc.Status` in the encoding of the request.',
      role: 'OPERATOR',
      query: OwnTeam,
      ownBody: { 'application/json': TracesSchema, [PROTOBUF]: v.string() },
      example: EXAMPLE,
      showError: showOtlpError,
      responses: {
        200: {
          description: 'The batch was taken in, but for the spans that were rejected',
          schema: ReceiptSchema,
          texts: [PROTOBUF],
        },
        ...Object.assign(
          {},
          ...[400, 401, 403, 404, 413, 415, 429, 500, 503].map((status) =>
            otlpFault(status, FAULTS[status]!),
          ),
        ),
      },
    }),
    async (c) => {
      const scope = c.get('scope')
      const teamId = chooseTeam(scope, c.req.valid('query').teamId)
      c.set('teamId', teamId)
      await demandTeam(scope, teamId, 'OPERATOR')
      const encoding = findEncoding(c)
      if (!encoding)
        throw new Fault('UNSUPPORTED_TYPE', `The body must be sent as ${PROTOBUF} or application/json`)
      const leave = seats.take(scope.access?.id ?? '', teamId)
      try {
        const bytes = await readBatchBytes(c)
        return answerReceipt(c, encoding, await receiveSpans(scope, teamId, { encoding, bytes }))
      } catch (error) {
        if (error instanceof MalformedBatch) throw new Fault('INVALID', error.message)
        throw error
      } finally {
        leave()
      }
    },
  )
}

/** The team that the spans are for: the one that is named, else that of the token. */
function chooseTeam({ actor, roles }: Scope, named: string | undefined): string {
  if (named !== undefined) return named
  if (actor.kind !== 'SDK_TOKEN')
    throw invalid([{ path: 'teamId', message: 'is needed without an SDK token, which has a team' }])
  const [own] = roles.keys()
  if (own === undefined) throw new Fault('FORBIDDEN', 'The SDK token has no team any more')
  return own
}
