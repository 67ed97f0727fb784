import { Hono } from 'hono'
import * as v from 'valibot'
import { DELIVERY_STATUSES, listDeliveries } from '../../../db/monitoring/channels/deliveries.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { InTeam, uuidField } from '../../http/fields.ts'
import { paging } from '../../http/query.ts'
import { DeliveryPage } from './fields.ts'

const status = v.optional(v.picklist(DELIVERY_STATUSES, `must be one of ${DELIVERY_STATUSES.join(', ')}`))
const Query = v.object({ ...paging, status })

/** The log of what was sent to notification channels. */
export function createDeliveryRoutes() {
  const responses = { 200: { description: 'A page, the newest first', schema: DeliveryPage } }
  const description = 'They are kept for 30 days.'
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/deliveries',
      accept({
        id: 'listNotificationDeliveries',
        tag: 'Monitoring',
        summary: "List what was sent of a team's alerts",
        description,
        role: 'member',
        params: InTeam,
        query: Query,
        responses,
      }),
      async (c) =>
        c.json(await listDeliveries(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .get(
      '/api/monitoring/teams/:teamId/channels/:id/deliveries',
      accept({
        id: 'listNotificationChannelDeliveries',
        tag: 'Monitoring',
        summary: 'List what was sent to a notification channel',
        description,
        role: 'member',
        params: v.object({ teamId: uuidField, id: uuidField }),
        query: Query,
        responses,
      }),
      async (c) => {
        const { teamId, id: channelId } = c.req.valid('param')
        return c.json(await listDeliveries(c.get('scope'), teamId, { ...c.req.valid('query'), channelId }))
      },
    )
}
