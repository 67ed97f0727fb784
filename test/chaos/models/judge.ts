import type { ExecutionBody, NodeBody } from '../../support/client.ts'
import { ENDED } from '../../support/client.ts'
import type { Strikes } from '../strikes.ts'
import { type Arrival, type Asked, ONCE_TOOLS, sayTurn, USAGE } from './world.ts'

/** A row of model_calls. */
export type CallRow = {
  executionId: string
  nodeId: string
  iteration: string
  step: number | null
  attempt: number
  status: string
  cost: string | null
  inputTokens: number | null
  createdAt: Date
}

type Step = NodeBody & { step: number | null; tool: string | null }

/** Everything that is known of what came of the executions. */
export type Evidence = { asked: Asked[]; arrivals: Arrival[]; rows: CallRow[]; strikes: Strikes }

/** What was counted, for the report. */
export const tally = { turns: 0, tasks: 0, again: 0, unknown: 0, lost: 0, paidTwice: 0, repeatedTools: 0 }

const ASKING = ['LLM', 'CLASSIFY', 'EXTRACT']

/** A machine that is busy with something else is not faulty. */
const SLACK_MS = 3_000

/** What is wrong with the model calls and tool calls of an execution. `types` are those of its nodes. */
export function findModelProblems(
  run: ExecutionBody,
  types: Map<string, string>,
  evidence: Evidence,
): string[] {
  const problems: string[] = []
  const records = run.nodeExecutions as Step[]
  for (const node of records)
    if (!ENDED.includes(node.status)) problems.push(`its node ${node.nodeId} is ${node.status}`)
  if (run.nodeExecutionsTotal > records.length) problems.push('not all records were read')
  const rows = evidence.rows.filter(({ executionId }) => executionId === run.id)
  problems.push(...judgeCalls(run, records, types, { ...evidence, rows }))
  for (const record of records) if (record.tool) problems.push(...judgeTask(run, record, evidence))
  return problems
}

/** Every turn that has succeeded was paid, and only once, unless something was lost; and every call that was sent has a row. */
function judgeCalls(
  run: ExecutionBody,
  records: Step[],
  types: Map<string, string>,
  { asked, rows, strikes }: Evidence,
): string[] {
  const problems = judgeUsage(run, rows)
  const own = asked.filter(({ execution }) => execution === run.id)
  for (const node of new Set([...own.map(({ node }) => node), ...rows.map(({ nodeId }) => nodeId)])) {
    const sent = own.filter((one) => one.node === node)
    const noted = rows.filter(({ nodeId }) => nodeId === node)
    if (sent.length > noted.length)
      problems.push(`${node}: ${sent.length} calls were sent, ${noted.length} noted`)
    const answered = sent.filter(({ fault }) => !fault).length
    const paid = noted.filter(({ status }) => status === 'SUCCESS').length
    if (paid > answered)
      problems.push(`${node}: ${paid} rows are SUCCESS, but only ${answered} calls were answered`)
  }
  for (const row of rows) {
    const what = `${row.nodeId}#${row.iteration}!${row.step} attempt ${row.attempt}`
    const isKnown = row.status === 'SUCCESS' || row.status === 'REFUSED'
    if (isKnown !== (row.cost !== null)) problems.push(`${what} is ${row.status} and costs ${row.cost}`)
    if (row.status === 'SUCCESS' && row.inputTokens !== 100)
      problems.push(`${what} has ${row.inputTokens} tokens`)
    if (row.status === 'SUCCESS' && Number(row.cost) !== 0.00014) problems.push(`${what} costs ${row.cost}`)
    if (isKnown) continue
    tally.lost++
    const at = row.createdAt.getTime()
    const wasCut = own.some(({ node, fault }) => node === row.nodeId && fault === 'cut')
    if (!wasCut && run.status !== 'CANCELLED' && !strikes.wasAway(at - SLACK_MS, at + 60_000))
      problems.push(`${what} is ${row.status}, but nothing was lost`)
  }
  for (const same of Map.groupBy(own, ({ hash }) => hash).values()) {
    tally.turns++
    for (const [index, again] of same.slice(1).entries()) {
      const before = same[index]!
      tally.again++
      // An attempt whose second call the vendor fails begins with its first one again.
      const isFailed = own.some(
        (one) =>
          one.fault &&
          one.node === again.node &&
          one.item === again.item &&
          one.at >= before.at &&
          one.at <= again.at,
      )
      if (isFailed) continue
      tally.paidTwice++
      if (!strikes.wasAway(before.at - SLACK_MS, again.at))
        problems.push(
          `${again.node} turn ${again.turn} was asked again after ${again.at - before.at} ms, but nothing was lost`,
        )
    }
  }
  const isTurn = ({ nodeId, step, tool }: Step) =>
    tool === null && (step !== null || ASKING.includes(types.get(nodeId) ?? ''))
  for (const record of records.filter(isTurn)) {
    if (record.status !== 'SUCCESS') continue
    const paid = rows.filter(
      (row) =>
        row.nodeId === record.nodeId &&
        row.iteration === (record.iteration ?? '') &&
        row.step === record.step &&
        row.status === 'SUCCESS',
    )
    if (paid.length > 0) continue
    problems.push(`${record.nodeId}!${record.step} has succeeded, but no call for it is noted as SUCCESS`)
  }
  return problems
}

/** What an execution and its steps say that they took is what the rows say. */
function judgeUsage(run: ExecutionBody, rows: CallRow[]): string[] {
  const want = sumRows(rows)
  const { usage } = run as { usage?: Record<string, unknown> }
  if (rows.length === 0) return usage ? [`no call is noted, but it took ${JSON.stringify(usage)}`] : []
  const { calls, unpricedCalls, inputTokens, outputTokens } = usage ?? {}
  const got = { calls, unpricedCalls, inputTokens, outputTokens }
  const isSame = JSON.stringify(got) === JSON.stringify(want)
  return isSame ? [] : [`it took ${JSON.stringify(got)}, by its rows ${JSON.stringify(want)}`]
}

/** What rows come to. */
export function sumRows(rows: CallRow[]) {
  const paid = rows.filter(({ status }) => status === 'SUCCESS').length
  return {
    calls: rows.length,
    unpricedCalls: rows.filter(({ cost }) => cost === null).length,
    inputTokens: paid * USAGE.prompt_tokens,
    outputTokens: paid * USAGE.completion_tokens,
  }
}

/** What must not be repeated has arrived once at most, and once exactly if its record says that it succeeded. */
function judgeTask(run: ExecutionBody, record: Step, { arrivals, strikes }: Evidence): string[] {
  const { tool, inputData, outputData, status, errorMessage } = record
  const { key } = inputData as { key?: string }
  if (tool === 'run' || tool === 'code') return status === 'SUCCESS' ? [] : judgeOther(run, record)
  if (key === undefined) return status === 'SUCCESS' ? [`the record of ${tool} has no arguments`] : []
  tally.tasks++
  const came = arrivals.filter((one) => one.tool === tool && one.key === key)
  const what = `${tool} ${key} (${status}, ${errorMessage})`
  const isDenied = tool === 'ask' && (outputData as { error?: string } | null)?.error !== undefined
  const isOnce = ONCE_TOOLS.includes(tool!)
  const problems: string[] = []
  if (came.length > 1) {
    tally.repeatedTools++
    if (isOnce) problems.push(`${what} has arrived ${came.length} times`)
    for (const [index, again] of came.slice(1).entries())
      if (!strikes.wasAway(came[index]!.at - SLACK_MS, again.at))
        problems.push(`${what} was called again after ${again.at - came[index]!.at} ms, but nothing was lost`)
  }
  if (new Set(came.map(({ idempotencyKey }) => idempotencyKey)).size > 1)
    problems.push(`${what} came with several keys`)
  if (isDenied && came.length > 0) problems.push(`${what} was called, but denied`)
  if (status === 'SUCCESS')
    return came.length === 0 && !isDenied ? [...problems, `${what} has not arrived`] : problems
  return [...problems, ...judgeOther(run, record, strikes)]
}

function judgeOther(
  run: ExecutionBody,
  { tool, status, errorMessage, startedAt, completedAt }: Step,
  strikes?: Strikes,
): string[] {
  if (status === 'CANCELLED' && run.status === 'CANCELLED') return []
  const isUnknown = errorMessage?.includes('may have been sent') ?? false
  if (!isUnknown || !ONCE_TOOLS.includes(tool!)) return [`${tool} is ${status}: ${errorMessage}`]
  tally.unknown++
  const [from, to] = [Date.parse(startedAt), completedAt ? Date.parse(completedAt) : Date.now()]
  return strikes?.wasAway(from - SLACK_MS, to)
    ? []
    : [`${tool} has an unknown outcome, but nothing was lost: ${errorMessage}`]
}

/** What is wrong with the steps and the output of an agent that has a plan of these turns, in an execution that succeeded. */
export function findAgentProblems(run: ExecutionBody, node: string, turns: string[][]): string[] {
  const records = (run.nodeExecutions as Step[]).filter(({ nodeId }) => nodeId === node)
  const problems: string[] = []
  for (const [iteration, own] of Map.groupBy(records, (one) => one.iteration)) {
    const steps = own.filter(({ step }) => step !== null).map(({ step, tool }) => `${step} ${tool}`)
    const all = [...turns.flatMap((tools) => [null, ...tools]), null].map((tool, at) => `${at + 1} ${tool}`)
    if (steps.join() !== all.join()) problems.push(`${node}#${iteration}: steps ${steps} instead of ${all}`)
    const output = own.find(({ step }) => step === null)?.outputData
    const plan = { execution: run.id, node, item: iteration ?? 'x', kind: 'agent', turns }
    const want = JSON.stringify({ text: sayTurn(plan, turns.length), steps: all.length })
    if (JSON.stringify(output) !== want)
      problems.push(`${node}#${iteration}: ${JSON.stringify(output)} instead of ${want}`)
  }
  return problems
}
