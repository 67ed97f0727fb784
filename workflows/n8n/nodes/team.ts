import { getOwn, isObject } from '../../json.ts'
import { MAX_LISTED } from '../../nodes/team.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { isTemplate, keepNumber, keepText, plainText } from '../texts.ts'

/** The node by which workflows of n8n read and change n8n itself: here they read their team's, and change nothing. */
export const TEAM_MAPPERS: Record<string, NodeMapper> = { n8n: mapN8n }

type Fields = Record<string, unknown>
type Reader = (node: SourceNode, tools: MapperTools) => Fields

const READERS: Record<string, Reader> = {
  'workflow getAll': readWorkflows,
  'workflow get': ({ parameters }, tools) => ({
    operation: 'getWorkflow',
    id: readWorkflowId(parameters.workflowId, tools),
  }),
  'execution getAll': readExecutions,
  'execution get': ({ parameters }) => {
    if (!isTemplate(parameters.executionId))
      throw new Error(
        'it reads one execution of n8n by its id, and that is not here: read another one with TEAM_READ',
      )
    return { operation: 'getExecution', id: keepText(parameters.executionId), ...readWhole(parameters) }
  },
}

function mapN8n(node: SourceNode, tools: MapperTools): MappedNode {
  const { resource = 'workflow', operation = resource === 'credential' ? 'create' : 'getAll' } =
    node.parameters
  const read = getOwn(READERS, `${resource} ${operation}`)
  if (!read)
    throw new Error(
      `it does "${String(operation)}" with "${String(resource)}" of n8n, and workflows here only read the workflows and ` +
        'executions of their team: let a person or a program of yours do it by the API',
    )
  const config = read(node, tools)
  const message =
    'It reads the workflows and executions of the team here, as a VIEWER. They look otherwise than in n8n: a workflow has ' +
    'nodes and edges, no connections and tags; an execution has a status as FAILED, a trigger and finishedAt or ' +
    'completedAt. Change the expressions that read them.'
  tools.report('parameter', 'parameters', message, node.parameters)
  return mapEach('TEAM_READ', config)
}

function readWorkflows({ parameters }: SourceNode, { report }: MapperTools): Fields {
  const filters = isObject(parameters.filters) ? parameters.filters : {}
  const { activeWorkflows, tags = '', name = '', projectId = '' } = filters
  if (plainText(tags) !== '')
    throw new Error(
      'it takes workflows by their tags, which there are none of here: list them with TEAM_READ, by a part of their names',
    )
  if (plainText(projectId) !== '')
    throw new Error(
      'it takes the workflows of another project of n8n, and a workflow here reads those of its team',
    )
  if (plainText(name) !== '') {
    const message =
      'n8n takes the workflows with this name. Here they are those with this text in their name.'
    report('parameter', 'parameters.filters.name', message, name)
  }
  return {
    operation: 'listWorkflows',
    ...(activeWorkflows === undefined
      ? {}
      : { active: isTemplate(activeWorkflows) ? activeWorkflows : activeWorkflows === true }),
    ...(plainText(name) === '' ? {} : { search: keepText(name) }),
    whole: true,
    ...readLimit(parameters, true),
  }
}

const STATUSES: Record<string, string> = { error: 'FAILED', success: 'SUCCESS', canceled: 'CANCELLED' }

function readExecutions({ parameters }: SourceNode, tools: MapperTools): Fields {
  const { workflowId, status } = isObject(parameters.filters) ? parameters.filters : {}
  const ours = status === undefined ? undefined : getOwn(STATUSES, String(plainText(status)))
  if (status !== undefined && ours === undefined)
    throw new Error(
      `it takes executions with the status "${String(status)}", which there is not here: take those that are RUNNING`,
    )
  const chosen = isObject(workflowId) ? workflowId.value : workflowId
  return {
    operation: 'listExecutions',
    ...(chosen === undefined || chosen === '' ? {} : { workflowId: readWorkflowId(workflowId, tools) }),
    ...(ours === undefined ? {} : { status: ours }),
    ...readWhole(parameters),
    ...readLimit(parameters, false),
  }
}

function readWhole({ options }: Fields): Fields {
  return Object(options).activeWorkflows === true ? { whole: true } : {}
}

function readLimit({ returnAll, limit = 100 }: Fields, usually: boolean): Fields {
  if ((returnAll ?? usually) === true) return { output: 'list' }
  const most = keepNumber(limit, 100)
  return { output: 'list', limit: typeof most === 'number' ? Math.min(Math.max(1, most), MAX_LISTED) : most }
}

/** An id that an expression gives; or ours for one that is named. Throws an Error if it is not said which that is. */
function readWorkflowId(given: unknown, { findWorkflow, own }: MapperTools): string {
  const { value, cachedResultName } = isObject(given) ? given : { value: given, cachedResultName: undefined }
  if (isTemplate(value)) return value
  const theirs = plainText(value) ?? ''
  if (theirs !== '' && theirs === own.theirs) return '{{ $execution.workflowId }}'
  const name = typeof cachedResultName === 'string' ? cachedResultName : ''
  const found = findWorkflow(theirs) ?? (name === '' ? undefined : findWorkflow(name))
  if (found !== undefined) return found
  throw new Error(
    `it reads the n8n workflow "${name || theirs}", and "workflows" does not say which workflow replaces it`,
  )
}
