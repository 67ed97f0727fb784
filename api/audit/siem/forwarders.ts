import { Hono } from 'hono'
import * as v from 'valibot'
import type { SiemCarrier } from '../../../activities/audit/siem/deliver.ts'
import { nameSender } from '../../../activities/audit/siem/describe.ts'
import { testForwarder } from '../../../activities/audit/siem/test.ts'
import {
  createForwarder,
  deleteForwarder,
  listForwarders,
  MAX_FORWARDERS,
  noteForwarderTest,
  readForwarder,
  updateForwarder,
} from '../../../db/audit/siem/forwarders.ts'
import { Fault } from '../../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { createSeats } from '../../executions/seats.ts'
import { accept } from '../../http/accept.ts'
import { InTeam, uuidField } from '../../http/fields.ts'
import { LOCATION_HEADER, messageResponse, timeSchema } from '../../http/responses.ts'
import { completeForwarder, ForwarderBody, ForwarderSchema } from './fields.ts'

const OfForwarder = v.object({ teamId: uuidField, id: uuidField })

const TestSchema = v.pipe(
  v.object({
    status: v.picklist(['SUCCESS', 'FAILED']),
    message: v.pipe(v.string(), v.description('What was sent, or what is wrong')),
    testedAt: timeSchema,
  }),
  v.title('AuditForwarderTest'),
)

const EXAMPLE = { name: 'Our SIEM', type: 'HTTPS', url: 'https://siem.example.com/ingest' }
const TESTS_AT_ONCE = 2

const one = { 200: { description: 'The forwarder', schema: ForwarderSchema } }

/** The routes of what sends a team's audit entries elsewhere. */
export function createForwarderRoutes(deps: Pick<ApiDeps, 'store' | 'outside' | 'publicUrl'>) {
  return new Hono<AppEnv>()
    .route('/', createForwarderListRoutes())
    .route('/', createOneForwarderRoutes())
    .route('/', createForwarderTestRoutes(deps))
}

function createForwarderListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/audit/team/:teamId/forwarders',
      accept({
        id: 'listAuditForwarders',
        tag: 'Audit',
        summary: "List a team's audit forwarders",
        role: 'ADMIN',
        params: InTeam,
        responses: {
          200: { description: 'All of them, the oldest first', schema: v.array(ForwarderSchema) },
        },
      }),
      async (c) => c.json(await listForwarders(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/audit/team/:teamId/forwarders',
      accept({
        id: 'createAuditForwarder',
        tag: 'Audit',
        summary: "Send a team's audit entries elsewhere",
        description:
          'The service sends each entry soon after it is written, at least once and in the order of the chain, by the ' +
          `team's egress rules. What fails is tried again. A team can have ${MAX_FORWARDERS} forwarders.`,
        role: 'ADMIN',
        params: InTeam,
        json: ForwarderBody,
        example: EXAMPLE,
        faults: [409],
        responses: {
          201: { description: 'The new forwarder', schema: ForwarderSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const forwarder = await createForwarder(
          c.get('scope'),
          teamId,
          completeForwarder(c.req.valid('json')),
        )
        return c.json(forwarder, 201, { Location: `/api/audit/team/${teamId}/forwarders/${forwarder.id}` })
      },
    )
}

function createOneForwarderRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/audit/team/:teamId/forwarders/:id',
      accept({
        id: 'readAuditForwarder',
        tag: 'Audit',
        summary: 'Read an audit forwarder',
        role: 'ADMIN',
        params: OfForwarder,
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await readForwarder(c.get('scope'), teamId, id))
      },
    )
    .put(
      '/api/audit/team/:teamId/forwarders/:id',
      accept({
        id: 'updateAuditForwarder',
        tag: 'Audit',
        summary: 'Change an audit forwarder',
        description:
          'Takes all of its settings; `enabled` and `after` stay as they are if they are not given. It is tried at ' +
          'once, whatever has failed before.',
        role: 'ADMIN',
        params: OfForwarder,
        json: ForwarderBody,
        example: EXAMPLE,
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(
          await updateForwarder(c.get('scope'), teamId, id, completeForwarder(c.req.valid('json'))),
        )
      },
    )
    .delete(
      '/api/audit/team/:teamId/forwarders/:id',
      accept({
        id: 'deleteAuditForwarder',
        tag: 'Audit',
        summary: 'Delete an audit forwarder',
        role: 'ADMIN',
        params: OfForwarder,
        responses: { 200: messageResponse('Forwarder deleted') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await deleteForwarder(c.get('scope'), teamId, id)
        return c.json({ message: 'Forwarder deleted' })
      },
    )
}

function createForwarderTestRoutes({
  store,
  outside,
  publicUrl,
}: Pick<ApiDeps, 'store' | 'outside' | 'publicUrl'>) {
  const seats = createSeats('tests of forwarders', { ofTeam: TESTS_AT_ONCE })
  return new Hono<AppEnv>().post(
    '/api/audit/team/:teamId/forwarders/:id/test',
    accept({
      id: 'testAuditForwarder',
      tag: 'Audit',
      summary: 'Test an audit forwarder',
      description:
        'Sends one event with the action AUDIT_FORWARDER_TESTED and the number 0, also if the forwarder is not ' +
        'enabled. A receiver that does not take it is a 200 with the status FAILED. A test takes at most 30 s; a team ' +
        'may have two under way.',
      role: 'ADMIN',
      params: OfForwarder,
      faults: [503],
      responses: { 200: { description: 'What came of it', schema: TestSchema } },
    }),
    async (c) => {
      const { teamId, id } = c.req.valid('param')
      const scope = c.get('scope')
      const forwarder = await readForwarder(scope, teamId, id)
      if (!outside) throw new Fault('UNAVAILABLE', 'This process tests no forwarders', { retryAfter: 5 })
      const giveBack = seats.take(scope.userId ?? '', teamId)
      try {
        const carrier: SiemCarrier = { store, outside, host: nameSender(publicUrl) }
        const said = await testForwarder(carrier, forwarder, c.req.raw.signal)
        await noteForwarderTest(scope, forwarder, said)
        return c.json({ ...said, testedAt: new Date() })
      } finally {
        giveBack()
      }
    },
  )
}
