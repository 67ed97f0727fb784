import * as v from 'valibot'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { countSchema, idSchema, timeSchema, versionSchema, warningsEntry } from '../http/responses.ts'
import { edgesSchema, nodesSchema, rulesSchema } from './graph.ts'
import { movedEntry } from './moved.ts'
import { settingsSchema } from './settings.ts'

/** Which graph of a workflow a request is about. */
export const WorkflowQuery = v.object({
  version: v.pipe(
    v.optional(v.picklist(['published', 'draft'], 'must be published or draft'), 'published'),
    v.description('Which graph is shown; 404 if there is no draft'),
  ),
})
const workflow = {
  id: idSchema,
  name: v.pipe(v.string(), v.examples(['Orders'])),
  description: v.nullable(v.pipe(v.string(), v.examples(['Takes orders']))),
  active: v.boolean(),
  teamId: idSchema,
  createdAt: timeSchema,
  updatedAt: timeSchema,
}

export const WorkflowSchema = v.pipe(v.object(workflow), v.title('Workflow'))
export const NewWorkflowSchema = v.pipe(
  v.object({ ...workflow, ...warningsEntry, ...movedEntry }),
  v.title('NewWorkflow'),
)
export const WorkflowItemSchema = v.pipe(
  v.object({
    ...workflow,
    nodeCount: countSchema,
    lastExecutionStatus: v.nullable(v.picklist(EXECUTION_STATUSES)),
    lastExecutionAt: v.pipe(v.nullable(timeSchema), v.description('When the newest execution was accepted')),
  }),
  v.title('WorkflowItem'),
)
export const WorkflowDetailSchema = v.pipe(
  v.object({
    ...workflow,
    nodes: nodesSchema,
    edges: edgesSchema,
    expressions: rulesSchema,
    settings: settingsSchema,
    version: v.pipe(versionSchema, v.description('The version that is shown')),
    publishedVersion: v.pipe(
      versionSchema,
      v.description('The version that triggers, chats, widgets and other workflows execute'),
    ),
    draftVersion: v.pipe(v.nullable(versionSchema), v.description('The version that is the draft')),
    draftBase: v.pipe(
      v.nullable(versionSchema),
      v.description('The version that was published when the draft began; null if that is not known'),
    ),
    ...warningsEntry,
    ...movedEntry,
  }),
  v.title('WorkflowDetail'),
)
