import { api, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

const { write } = resource('executions')

const workflow = api.api.workflows[':id']
const node = workflow.nodes[':nodeId']

/** A second try after a broken connection has the same key, which starts no second execution. */
export function makeKey(): string {
  // crypto.randomUUID is for secure origins; an installation in a private network may have none.
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

type Recovery = { how: 'retry' | 'rerun'; version: 'same' | 'current'; key: string }

/** Takes up an execution that has ended: from what failed, or all of it. */
export async function recoverExecution(id: string, { how, version, key }: Recovery) {
  const asked = { param: { id }, json: { version }, header: { 'Idempotency-Key': key } }
  const route = api.api.executions[':id'][how]
  return write(read(route.$post(asked, { headers: asked.header })))
}

type Start = Parameters<typeof workflow.execute.$post>[0]['json']

export async function executeWorkflow(id: string, json: Start, key: string) {
  const headers = { 'Idempotency-Key': key }
  return write(read(workflow.execute.$post({ param: { id }, json, query: {} }, { headers })))
}

type Single = Parameters<typeof node.run.$post>[0]['json']

/** Executes one node alone; what it does is real. */
export async function runNode(workflowId: string, nodeId: string, json: Single, key: string) {
  const headers = { 'Idempotency-Key': key }
  const param = { id: workflowId, nodeId }
  return write(read(node.run.$post({ param, json }, { headers })))
}

const examples = resource('examples')
const example = workflow.examples[':exampleId']

/** The saved examples of a workflow by name, without their contents. */
export function useExamples(workflowId: string) {
  return examples.useRead([workflowId], () => read(workflow.examples.$get({ param: { id: workflowId } })))
}

export function readExample(id: string, exampleId: string) {
  return read(example.$get({ param: { id, exampleId } }))
}

type NewExample = Parameters<typeof workflow.examples.$post>[0]['json']

/** Keeps an example, in place of the one with this id if there is one. */
export function saveExample(id: string, { id: exampleId, ...json }: NewExample & { id: string | undefined }) {
  const saved = exampleId
    ? read(example.$put({ param: { id, exampleId }, json }))
    : read(workflow.examples.$post({ param: { id }, json }))
  return examples.write(saved, id)
}

export function deleteExample(id: string, exampleId: string) {
  return examples.write(read(example.$delete({ param: { id, exampleId } })), id)
}
