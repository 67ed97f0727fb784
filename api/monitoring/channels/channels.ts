import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import * as v from 'valibot'
import { describeTest } from '../../../activities/monitoring/channels/messages.ts'
import { RECEIVER_MS, sendToChannel } from '../../../activities/monitoring/channels/send.ts'
import { Fault } from '../../../db/fault.ts'
import {
  createChannel,
  deleteChannel,
  findChannel,
  listChannels,
  MAX_CHANNELS,
  noteChannelTest,
  readChannel,
  rotateChannelSecret,
  updateChannel,
} from '../../../db/monitoring/channels/channels.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { createSeats } from '../../executions/seats.ts'
import { accept } from '../../http/accept.ts'
import { InTeam, uuidField } from '../../http/fields.ts'
import { LOCATION_HEADER, messageResponse } from '../../http/responses.ts'
import {
  ChannelBody,
  ChannelPatchBody,
  ChannelSchema,
  ChannelTestSchema,
  NewChannelSchema,
  NewSecretSchema,
} from './fields.ts'

const OneOfTeam = v.object({ teamId: uuidField, id: uuidField })

const TESTS_AT_ONCE = 2

const one = { 200: { description: 'The channel', schema: ChannelSchema } }

/** The routes of what tells a team of its alerts. */
export function createChannelRoutes(deps: Pick<ApiDeps, 'store' | 'outside' | 'mailer' | 'publicUrl'>) {
  return new Hono<AppEnv>()
    .route('/', createChannelListRoutes())
    .route('/', createOneChannelRoutes())
    .route('/', createChannelTestRoutes(deps))
}

function createChannelListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/channels',
      accept({
        id: 'listNotificationChannels',
        tag: 'Monitoring',
        summary: "List a team's notification channels",
        role: 'member',
        params: InTeam,
        responses: { 200: { description: 'All of them, the oldest first', schema: v.array(ChannelSchema) } },
      }),
      async (c) => c.json(await listChannels(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/monitoring/teams/:teamId/channels',
      accept({
        id: 'createNotificationChannel',
        tag: 'Monitoring',
        summary: 'Add a notification channel',
        description:
          `Alerts go to it once the team's config or a playbook names it. A team can have ${MAX_CHANNELS}. Webhooks are ` +
          'signed by the Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature).',
        role: 'ADMIN',
        params: InTeam,
        json: ChannelBody,
        example: { name: 'On call', type: 'EMAIL', config: { recipients: ['ada@example.com'] } },
        faults: [409],
        responses: {
          201: {
            description: 'The new channel; of a webhook with its secret',
            schema: NewChannelSchema,
            headers: LOCATION_HEADER,
          },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const channel = await createChannel(c.get('scope'), teamId, c.req.valid('json'))
        return c.json(channel, 201, { Location: `/api/monitoring/teams/${teamId}/channels/${channel.id}` })
      },
    )
}

function createOneChannelRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/channels/:id',
      accept({
        id: 'readNotificationChannel',
        tag: 'Monitoring',
        summary: 'Read a notification channel',
        role: 'member',
        params: OneOfTeam,
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await readChannel(c.get('scope'), teamId, id))
      },
    )
    .put(
      '/api/monitoring/teams/:teamId/channels/:id',
      accept({
        id: 'updateNotificationChannel',
        tag: 'Monitoring',
        summary: 'Change a notification channel',
        description:
          'Changes what is given; the type stays. A webhook whose URL is another one has a new secret, and none before ' +
          'it signs any more.',
        role: 'ADMIN',
        params: OneOfTeam,
        json: ChannelPatchBody,
        example: { name: 'Nobody on call', enabled: false },
        faults: [409],
        responses: {
          200: {
            description: 'The channel; of a webhook with another URL with its new secret',
            schema: NewChannelSchema,
          },
        },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await updateChannel(c.get('scope'), teamId, id, c.req.valid('json')))
      },
    )
    .delete(
      '/api/monitoring/teams/:teamId/channels/:id',
      accept({
        id: 'deleteNotificationChannel',
        tag: 'Monitoring',
        summary: 'Delete a notification channel',
        description:
          "What waits to be sent to it fails. It is taken out of the team's config; the log stays.",
        role: 'ADMIN',
        params: OneOfTeam,
        responses: { 200: messageResponse('Channel deleted') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await deleteChannel(c.get('scope'), teamId, id)
        return c.json({ message: 'Channel deleted' })
      },
    )
    .post(
      '/api/monitoring/teams/:teamId/channels/:id/rotate-secret',
      accept({
        id: 'rotateNotificationChannelSecret',
        tag: 'Monitoring',
        summary: 'Give a webhook another secret',
        description: 'For a day each request is signed with both.',
        role: 'ADMIN',
        params: OneOfTeam,
        faults: [409],
        responses: { 200: { description: 'The new secret', schema: NewSecretSchema } },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await rotateChannelSecret(c.get('scope'), teamId, id))
      },
    )
}

function createChannelTestRoutes({
  store,
  outside,
  mailer,
  publicUrl,
}: Pick<ApiDeps, 'store' | 'outside' | 'mailer' | 'publicUrl'>) {
  const seats = createSeats('tests of channels', { ofTeam: TESTS_AT_ONCE })
  return new Hono<AppEnv>().post(
    '/api/monitoring/teams/:teamId/channels/:id/test',
    accept({
      id: 'testNotificationChannel',
      tag: 'Monitoring',
      summary: 'Test a notification channel',
      description:
        'Sends one message of the type `channel.test`, also if the channel is not enabled, and tells what came of it: ' +
        'a receiver that does not take it is a 200 with the status FAILED. A test takes at most 30 s; a team may have ' +
        'two under way.',
      role: 'ADMIN',
      params: OneOfTeam,
      faults: [503],
      responses: { 200: { description: 'What came of it', schema: ChannelTestSchema } },
    }),
    async (c) => {
      const { teamId, id } = c.req.valid('param')
      const scope = c.get('scope')
      const { name } = await readChannel(scope, teamId, id)
      if (!outside) throw new Fault('UNAVAILABLE', 'This process tests no channels', { retryAfter: 5 })
      const giveBack = seats.take(scope.userId ?? '', teamId)
      try {
        const channel = await findChannel(store.db, teamId, id)
        if (!channel) throw new Fault('NOT_FOUND', 'There is no such channel')
        const carrier = { store, outside, mailer, publicUrl }
        const progress = { told: [], onTold: async () => {} }
        const message = describeTest(randomUUID(), teamId, publicUrl)
        const late = AbortSignal.timeout(RECEIVER_MS)
        const signal = AbortSignal.any([c.req.raw.signal, late])
        const failure = await sendToChannel(carrier, { teamId, channel }, message, progress, signal).catch(
          (error) => {
            if (!signal.aborted) throw error
            return { message: `The receiver has not taken it within ${RECEIVER_MS / 1_000} s` }
          },
        )
        const said = failure
          ? ({ status: 'FAILED', message: failure.message } as const)
          : ({ status: 'SUCCESS', message: 'The receiver has taken it' } as const)
        await noteChannelTest(scope, { id, teamId, name }, said)
        return c.json({ ...said, testedAt: new Date() })
      } finally {
        giveBack()
      }
    },
  )
}
