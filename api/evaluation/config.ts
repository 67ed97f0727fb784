import { Hono } from 'hono'
import * as v from 'valibot'
import {
  deleteEvalConfig,
  deleteTeamEvalConfig,
  readEvalConfig,
  readTeamEvalConfig,
  updateEvalConfig,
  updateTeamEvalConfig,
} from '../../db/evaluation/configs.ts'
import { readDimensions, updateDimensions } from '../../db/evaluation/dimensions.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam, uuidField } from '../http/fields.ts'
import {
  ConfigPatch,
  ConfigSchema,
  DimensionsInput,
  DimensionsSchema,
  TeamConfigSchema,
} from './configfields.ts'

const InWorkflow = v.object({ workflowId: uuidField })

const OF_WORKFLOW = '/api/monitoring/workflow/:workflowId/eval-config'
const OF_TEAM = '/api/monitoring/teams/:teamId/eval-config'
const DIMENSIONS = '/api/monitoring/teams/:teamId/eval-dimensions'
const CHANGES =
  'Changes the fields that are given; null takes a word back. 400 if a judge would be switched on without a provider, ' +
  'a model and a credential, or with a credential of another provider.'

const one = { 200: { description: 'The config', schema: ConfigSchema } }
const ofTeam = { 200: { description: 'The config', schema: TeamConfigSchema } }
const dimensions = { 200: { description: 'The dimensions', schema: DimensionsSchema } }
const gone = { 204: { description: 'It says nothing any more' } }

/** The routes with which runs are set up to be judged. */
export function createEvalConfigRoutes() {
  return new Hono<AppEnv>()
    .route('/', createWorkflowConfigRoutes())
    .route('/', createTeamConfigRoutes())
    .route('/', createDimensionRoutes())
}

function createWorkflowConfigRoutes() {
  return new Hono<AppEnv>()
    .get(
      OF_WORKFLOW,
      accept({
        id: 'readEvalConfig',
        tag: 'Monitoring',
        summary: 'Read how the runs of a workflow are judged',
        description: 'Fields are null where the workflow says nothing; `effective` is what counts.',
        role: 'member',
        params: InWorkflow,
        responses: one,
      }),
      async (c) => {
        const { workflowId } = c.req.valid('param')
        return c.json({ workflowId, ...(await readEvalConfig(c.get('scope'), workflowId)) })
      },
    )
    .put(
      OF_WORKFLOW,
      accept({
        id: 'updateEvalConfig',
        tag: 'Monitoring',
        summary: 'Change how the runs of a workflow are judged',
        description: CHANGES,
        role: 'BUILDER',
        params: InWorkflow,
        json: ConfigPatch,
        example: { evalSamplingRate: 20, evalFailureThreshold: 3.5 },
        responses: one,
      }),
      async (c) => {
        const { workflowId } = c.req.valid('param')
        const config = await updateEvalConfig(c.get('scope'), workflowId, c.req.valid('json'))
        return c.json({ workflowId, ...config })
      },
    )
    .delete(
      OF_WORKFLOW,
      accept({
        id: 'deleteEvalConfig',
        tag: 'Monitoring',
        summary: "Take back a workflow's word on how it is judged",
        description: "The team's config counts then. May be repeated.",
        role: 'BUILDER',
        params: InWorkflow,
        responses: gone,
      }),
      async (c) => {
        await deleteEvalConfig(c.get('scope'), c.req.valid('param').workflowId)
        return c.body(null, 204)
      },
    )
}

function createTeamConfigRoutes() {
  return new Hono<AppEnv>()
    .get(
      OF_TEAM,
      accept({
        id: 'readTeamEvalConfig',
        tag: 'Monitoring',
        summary: 'Read how the runs of a team are judged',
        description: 'It counts for each field of which a workflow says nothing.',
        role: 'member',
        params: InTeam,
        responses: ofTeam,
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        return c.json({ teamId, ...(await readTeamEvalConfig(c.get('scope'), teamId)) })
      },
    )
    .put(
      OF_TEAM,
      accept({
        id: 'updateTeamEvalConfig',
        tag: 'Monitoring',
        summary: 'Change how the runs of a team are judged',
        description: CHANGES,
        role: 'ADMIN',
        params: InTeam,
        json: ConfigPatch,
        example: { evalSamplingRate: 20, evalFailureThreshold: 3.5 },
        responses: ofTeam,
      }),
      async (c) => {
        const { teamId } = c.req.valid('param')
        const config = await updateTeamEvalConfig(c.get('scope'), teamId, c.req.valid('json'))
        return c.json({ teamId, ...config })
      },
    )
    .delete(
      OF_TEAM,
      accept({
        id: 'deleteTeamEvalConfig',
        tag: 'Monitoring',
        summary: "Take back a team's word on how its runs are judged",
        description: 'Only workflows with a config of their own are judged then. May be repeated.',
        role: 'ADMIN',
        params: InTeam,
        responses: gone,
      }),
      async (c) => {
        await deleteTeamEvalConfig(c.get('scope'), c.req.valid('param').teamId)
        return c.body(null, 204)
      },
    )
}

function createDimensionRoutes() {
  return new Hono<AppEnv>()
    .get(
      DIMENSIONS,
      accept({
        id: 'readEvalDimensions',
        tag: 'Monitoring',
        summary: "Read a team's own dimensions of judging",
        role: 'member',
        params: InTeam,
        responses: dimensions,
      }),
      async (c) => c.json({ dimensions: await readDimensions(c.get('scope'), c.req.valid('param').teamId) }),
    )
    .put(
      DIMENSIONS,
      accept({
        id: 'updateEvalDimensions',
        tag: 'Monitoring',
        summary: "Change a team's own dimensions of judging",
        description:
          'Replaces the list. A config that names one that is not there any more leaves it without a score.',
        role: 'ADMIN',
        params: InTeam,
        json: DimensionsInput,
        example: { dimensions: [{ name: 'tone', rubric: 'How friendly the output is. 5: warm. 1: rude.' }] },
        responses: dimensions,
      }),
      async (c) => {
        const { dimensions } = c.req.valid('json')
        const { teamId } = c.req.valid('param')
        return c.json({ dimensions: await updateDimensions(c.get('scope'), teamId, dimensions) })
      },
    )
}
