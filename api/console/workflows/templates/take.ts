import { listCredentials } from '../../credentials/data.ts'
import { addressOf, api, askRaw, queries, read } from '../../data/client.ts'
import { Refusal } from '../../data/refusal.ts'
import { listExecutions } from '../../executions/data.ts'
import { executeWorkflow, makeKey } from '../../executions/starts/data.ts'
import { changeWorkflow, createWorkflow, listWorkflows } from '../data.ts'
import type { Template, TemplateGraph } from './template.ts'

/** Takes a template: makes its workflow, starts its first execution, and returns the id of that. */
export async function takeTemplate(template: Template, teamId: string): Promise<string> {
  const credentialId = template.asks ? await findCredential(teamId, template.asks) : ''
  const base = addressOf('/').replace(/\/$/, '')
  const draft = template.make({ base, credentialId })
  const { id } = await createWorkflow({ ...draft, teamId, name: await findName(draft, teamId) })
  const { first } = template
  if (first.by === 'hand') {
    return (await executeWorkflow(id, { teamId, data: first.data }, makeKey())).executionId
  }
  await changeWorkflow(id, { active: true })
  if (first.by === 'webhook') {
    const answer = await askRaw('POST', `/hooks/${id}/${first.path}`, first.body)
    const { executionId } = (await answer.json()) as { executionId: string }
    await queries.invalidateQueries({ queryKey: ['executions'] })
    return executionId
  }
  return askFirst(id, teamId, first.message)
}

/** Opens a chat and sends a message; the reply is not waited for. */
async function askFirst(workflowId: string, teamId: string, content: string): Promise<string> {
  const session = await read(api.api['agent-chat'].sessions.$post({ json: { teamId, workflowId } }))
  const reply = await askRaw('POST', `/api/agent-chat/sessions/${session.id}/messages`, { content })
  await reply.body?.cancel()
  const { content: found } = await listExecutions(teamId, { workflowId, size: 1 })
  await queries.invalidateQueries({ queryKey: ['executions'] })
  if (!found[0]) throw new Refusal(0, 'The message has not started an execution')
  return found[0].id
}

/**
 * A credential of the team that needs no data, such as that of the demo model. It is made if the team does not have it.
 */
async function findCredential(teamId: string, type: string): Promise<string> {
  const known = (await listCredentials(teamId)).find((one) => one.type === type)
  if (known) return known.id
  const made = await askRaw('POST', '/api/credentials', { teamId, name: 'Demo model', type, data: {} })
  await queries.invalidateQueries({ queryKey: ['credentials'] })
  return ((await made.json()) as { id: string }).id
}

/** Names are unique in a team: a second one of the same template gets a number. */
async function findName({ name }: TemplateGraph, teamId: string): Promise<string> {
  const { content } = await listWorkflows(teamId, { search: name, size: 100 })
  const taken = new Set(content.map((one) => one.name))
  let number = 2
  if (!taken.has(name)) return name
  while (taken.has(`${name} ${number}`)) number += 1
  return `${name} ${number}`
}
