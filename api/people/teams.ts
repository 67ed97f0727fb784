import { Hono } from 'hono'
import * as v from 'valibot'
import { ROLES } from '../../db/acts.ts'
import { createTeam, deleteTeam, listTeams, readTeam, TEAM_PLANS, updateTeam } from '../../db/people/teams.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, InTeam } from '../http/fields.ts'
import { countSchema, idSchema, LOCATION_HEADER, messageResponse, timeSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'

const teamName = v.pipe(
  boundedString(200),
  v.trim(),
  v.nonEmpty('must not be empty'),
  v.examples(['Research']),
)
const description = v.nullable(boundedString(5_000, 0))

const NewTeam = v.object({ name: teamName, description: v.optional(description) })
const days = v.pipe(
  v.number('must be a number of days'),
  v.integer('must be a whole number of days'),
  v.minValue(1, 'must be at least 1'),
  v.maxValue(3_650, 'must be at most 3650'),
)
const TeamPatch = v.object({
  name: v.optional(teamName),
  description: v.optional(description),
  chatRetentionDays: v.optional(v.nullable(days)),
})

const described = v.nullable(v.pipe(v.string(), v.examples(['Experiments and prototypes'])))
const CreatedTeamSchema = v.pipe(
  v.object({ id: idSchema, name: v.string(), description: described, createdAt: timeSchema }),
  v.title('NewTeam'),
)
const TeamItemSchema = v.pipe(
  v.object({
    id: idSchema,
    name: v.string(),
    memberCount: countSchema,
    plan: v.picklist(TEAM_PLANS),
    role: v.pipe(v.picklist(ROLES), v.description("The caller's role. Only SDK tokens can have VIEWER")),
    createdAt: timeSchema,
  }),
  v.title('TeamItem'),
)
const TeamDetailSchema = v.pipe(
  v.object({
    id: idSchema,
    name: v.string(),
    description: described,
    memberCount: countSchema,
    workflowCount: countSchema,
    credentialCount: countSchema,
    plan: v.picklist(TEAM_PLANS),
    chatRetentionDays: v.pipe(
      v.nullable(countSchema),
      v.description('For how many days messages of chats are kept; null is until they are deleted'),
    ),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('Team'),
)

const BY_ID = { teamId: '$response.body#/id' }
const TEAM_LINKS = {
  readTeam: { parameters: BY_ID },
  updateTeam: { parameters: BY_ID },
  addMember: { parameters: BY_ID },
  createSdkToken: { parameters: BY_ID },
  createWorkflow: { parameters: {}, requestBody: BY_ID },
  deleteTeam: { parameters: BY_ID },
}

/** The routes of teams. All workflows, executions, variables and SDK tokens belong to a team. */
export function createTeamRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/teams',
      accept({
        id: 'listTeams',
        tag: 'Teams',
        summary: 'List your teams',
        description: 'Sorted by name. With an SDK token, only the team of the token.',
        role: 'user',
        responses: { 200: { description: 'The teams', schema: v.array(TeamItemSchema) } },
      }),
      async (c) => c.json(await listTeams(c.get('scope'))),
    )
    .post(
      '/api/teams',
      accept({
        id: 'createTeam',
        tag: 'Teams',
        summary: 'Create a team',
        description:
          "The caller becomes its ADMIN. A person may create 20 teams, the instance's admin any number (409).",
        role: 'session',
        json: NewTeam,
        faults: [409],
        responses: {
          201: {
            description: 'The team',
            schema: CreatedTeamSchema,
            headers: LOCATION_HEADER,
            links: TEAM_LINKS,
          },
        },
      }),
      async (c) => {
        const { defaultPlan: plan } = deps
        const team = await createTeam(c.get('scope'), { ...c.req.valid('json'), plan })
        c.header('Location', `/api/teams/${team.id}`)
        return c.json(team, 201)
      },
    )
    .get(
      '/api/teams/:teamId',
      accept({
        id: 'readTeam',
        tag: 'Teams',
        summary: 'Read a team',
        role: 'member',
        params: InTeam,
        responses: { 200: { description: 'The team', schema: TeamDetailSchema } },
      }),
      async (c) => c.json(await readTeam(c.get('scope'), c.req.valid('param').teamId)),
    )
    .put(
      '/api/teams/:teamId',
      accept({
        id: 'updateTeam',
        tag: 'Teams',
        summary: 'Change a team',
        description: 'Changes the fields that are given and keeps the rest.',
        role: 'ADMIN',
        params: InTeam,
        json: TeamPatch,
        example: { name: 'Research', description: 'Experiments and prototypes' },
        responses: { 200: { description: 'The changed team', schema: TeamDetailSchema } },
      }),
      async (c) => c.json(await updateTeam(c.get('scope'), c.req.valid('param').teamId, c.req.valid('json'))),
    )
    .delete(
      '/api/teams/:teamId',
      accept({
        id: 'deleteTeam',
        tag: 'Teams',
        summary: 'Delete a team and everything in it',
        description:
          'Deletes its workflows, executions, credentials, SDK tokens and memberships permanently. Open executions are ended.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: messageResponse('Team deleted') },
      }),
      async (c) => {
        const executions = await deleteTeam(c.get('scope'), c.req.valid('param').teamId)
        await carryOutEach(deps, 'DELETE', executions)
        return c.json({ message: 'Team deleted' })
      },
    )
}
