import { Hono } from 'hono'
import * as v from 'valibot'
import { createTeam, deleteTeam, listTeams, PLANS, readTeam, updateTeam } from '../db/teams.ts'
import { accept, InTeam, text } from './accept.ts'
import { count, id, LOCATION, said, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'

const name = v.pipe(text(200), v.trim(), v.nonEmpty('must not be empty'), v.examples(['Research']))
const description = v.nullable(text(5_000, 0))

const NewTeam = v.object({ name, description: v.optional(description) })
const TeamPatch = v.object({ name: v.optional(name), description: v.optional(description) })

const described = v.nullable(v.pipe(v.string(), v.examples(['What it is for'])))
const TeamAnswer = v.pipe(
  v.object({ id, name: v.string(), description: described, createdAt: time }),
  v.title('NewTeam'),
)
const TeamItemAnswer = v.pipe(
  v.object({
    id,
    name: v.string(),
    memberCount: count,
    plan: v.picklist(PLANS),
    role: v.pipe(
      v.picklist(['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN']),
      v.description("The caller's; VIEWER for SDK tokens only"),
    ),
    createdAt: time,
  }),
  v.title('TeamItem'),
)
const TeamDetailAnswer = v.pipe(
  v.object({
    id,
    name: v.string(),
    description: described,
    memberCount: count,
    workflowCount: count,
    credentialCount: count,
    plan: v.picklist(PLANS),
    createdAt: time,
    updatedAt: time,
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

/** Teams, to which everything belongs. */
export function createTeamRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/teams',
      accept({
        id: 'listTeams',
        tag: 'Teams',
        summary: "List the caller's teams",
        description: 'By name. An SDK token sees its own team.',
        role: 'user',
        responses: { 200: { description: 'The teams', schema: v.array(TeamItemAnswer) } },
      }),
      async (c) => c.json(await listTeams(c.get('scope'))),
    )
    .post(
      '/api/teams',
      accept({
        id: 'createTeam',
        tag: 'Teams',
        summary: 'Create a team',
        description: 'The caller becomes its ADMIN.',
        role: 'session',
        json: NewTeam,
        responses: {
          201: { description: 'The team', schema: TeamAnswer, headers: LOCATION, links: TEAM_LINKS },
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
        responses: { 200: { description: 'The team', schema: TeamDetailAnswer } },
      }),
      async (c) => c.json(await readTeam(c.get('scope'), c.req.valid('param').teamId)),
    )
    .put(
      '/api/teams/:teamId',
      accept({
        id: 'updateTeam',
        tag: 'Teams',
        summary: 'Change a team',
        role: 'ADMIN',
        params: InTeam,
        json: TeamPatch,
        example: { name: 'Research', description: 'What it is for' },
        responses: { 200: { description: 'The team as it is now', schema: TeamDetailAnswer } },
      }),
      async (c) => c.json(await updateTeam(c.get('scope'), c.req.valid('param').teamId, c.req.valid('json'))),
    )
    .delete(
      '/api/teams/:teamId',
      accept({
        id: 'deleteTeam',
        tag: 'Teams',
        summary: 'Delete a team and everything in it',
        description: 'For good: its workflows, executions, tokens and members. What runs is ended.',
        role: 'ADMIN',
        params: InTeam,
        responses: { 200: said('Team deleted') },
      }),
      async (c) => {
        const executions = await deleteTeam(c.get('scope'), c.req.valid('param').teamId)
        await runErrands(deps, 'DELETE', executions)
        return c.json({ message: 'Team deleted' })
      },
    )
}
