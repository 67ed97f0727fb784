import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createPlaybook,
  deletePlaybook,
  listPlaybooks,
  MAX_PLAYBOOKS,
  readPlaybook,
  updatePlaybook,
} from '../../../db/monitoring/playbooks/playbooks.ts'
import { listPlaybookRuns } from '../../../db/monitoring/playbooks/runs.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { InTeam, uuidField } from '../../http/fields.ts'
import { paging } from '../../http/query.ts'
import { LOCATION_HEADER, messageResponse } from '../../http/responses.ts'
import { PlaybookBody, PlaybookPatchBody, PlaybookRunPage, PlaybookSchema } from './fields.ts'

const OneOfTeam = v.object({ teamId: uuidField, id: uuidField })

const one = { 200: { description: 'The playbook', schema: PlaybookSchema } }

/** The routes of what a team does by itself about its alerts. */
export function createPlaybookRoutes() {
  return new Hono<AppEnv>().route('/', createPlaybookListRoutes()).route('/', createOnePlaybookRoutes())
}

function createPlaybookListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/playbooks',
      accept({
        id: 'listPlaybooks',
        tag: 'Monitoring',
        summary: "List a team's incident playbooks",
        role: 'member',
        params: InTeam,
        responses: { 200: { description: 'All of them, the oldest first', schema: v.array(PlaybookSchema) } },
      }),
      async (c) => c.json(await listPlaybooks(c.get('scope'), c.req.valid('param').teamId)),
    )
    .post(
      '/api/monitoring/teams/:teamId/playbooks',
      accept({
        id: 'createPlaybook',
        tag: 'Monitoring',
        summary: 'Add an incident playbook',
        description:
          'Its steps are done one after the other when there is such an alert, or such an evaluation: at most once for ' +
          `a workflow and an hour. A team can have ${MAX_PLAYBOOKS}.`,
        role: 'ADMIN',
        params: InTeam,
        json: PlaybookBody,
        example: {
          name: 'Stop what fails',
          on: { alertTypes: ['ANOMALY'], minSeverity: 'HIGH' },
          steps: [{ type: 'DEACTIVATE_WORKFLOW' }],
        },
        faults: [409],
        responses: {
          201: { description: 'The new playbook', schema: PlaybookSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const playbook = await createPlaybook(c.get('scope'), teamId, c.req.valid('json'))
        return c.json(playbook, 201, { Location: `/api/monitoring/teams/${teamId}/playbooks/${playbook.id}` })
      },
    )
}

function createOnePlaybookRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/playbooks/:id',
      accept({
        id: 'readPlaybook',
        tag: 'Monitoring',
        summary: 'Read an incident playbook',
        role: 'member',
        params: OneOfTeam,
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await readPlaybook(c.get('scope'), teamId, id))
      },
    )
    .put(
      '/api/monitoring/teams/:teamId/playbooks/:id',
      accept({
        id: 'updatePlaybook',
        tag: 'Monitoring',
        summary: 'Change an incident playbook',
        description:
          'Changes what is given, of `on` key by key. A run that has begun keeps its steps; with `enabled: false` it stops.',
        role: 'ADMIN',
        params: OneOfTeam,
        json: PlaybookPatchBody,
        example: { enabled: false },
        faults: [409],
        responses: one,
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await updatePlaybook(c.get('scope'), teamId, id, c.req.valid('json')))
      },
    )
    .delete(
      '/api/monitoring/teams/:teamId/playbooks/:id',
      accept({
        id: 'deletePlaybook',
        tag: 'Monitoring',
        summary: 'Delete an incident playbook',
        description: 'With its runs, of which those that are under way stop.',
        role: 'ADMIN',
        params: OneOfTeam,
        responses: { 200: messageResponse('Playbook deleted') },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        await deletePlaybook(c.get('scope'), teamId, id)
        return c.json({ message: 'Playbook deleted' })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/playbooks/:id/runs',
      accept({
        id: 'listPlaybookRuns',
        tag: 'Monitoring',
        summary: 'List the runs of an incident playbook',
        description: 'Those that were skipped included. They are kept for 30 days.',
        role: 'member',
        params: OneOfTeam,
        query: v.object(paging),
        responses: { 200: { description: 'A page, the newest first', schema: PlaybookRunPage } },
      }),
      async (c) => {
        const { teamId, id } = c.req.valid('param')
        return c.json(await listPlaybookRuns(c.get('scope'), teamId, id, c.req.valid('query')))
      },
    )
}
