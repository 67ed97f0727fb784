import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Context } from 'hono'
import { EXPRESSIONS_BUSY, EXPRESSIONS_DOWN } from '../../activities/expressions/failures.ts'
import { checkJson } from '../../activities/jsonschema/check.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import { readExecution } from '../../db/executions/executions.ts'
import type { StartedExecution } from '../../db/executions/starts/add.ts'
import { awaitAnswer, leaveAnswer } from '../../db/executions/starts/webhooks.ts'
import { isEnded } from '../../db/executions/status.ts'
import { Fault } from '../../db/fault.ts'
import { startTool, type WorkflowTool } from '../../db/mcp/tools.ts'
import { OWN_TOOL } from '../../workflows/nodes/mcp.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import type { Seats } from '../executions/seats.ts'
import { startAwaited } from '../executions/starts/awaited.ts'
import { awaitEnd } from '../executions/wait.ts'
import { isTooLarge, refuseCall, tell, writeRefusal } from './result.ts'

/** How long a call waits for its execution: clients give up after a minute if they hear nothing. */
const WAIT_MS = 60_000

const PROGRESS_MS = 5_000

/** How long the check of the arguments waits for a process, when others keep them all. */
const PATIENCE_MS = 5_000

/** How a call is made: `key` is the client's for this call, and `report` tells the client how it goes on. */
export type Calling = {
  key: string | undefined
  report: ((progress: { progress: number; total: number; message: string }) => Promise<void>) | undefined
}

/**
 * Starts an execution for a call of a workflow's tool and waits for its end, a minute at most. Arguments that do not fit
 * start nothing. The execution goes on if the client disconnects or the time is over.
 */
export async function callTool(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { tool, args, seats }: { tool: WorkflowTool; args: Record<string, unknown>; seats: Seats },
  { key, report }: Calling,
): Promise<CallToolResult> {
  const problems = await fitArguments(deps, c, tool, args)
  if (problems.length > 0)
    return refuseCall(['The arguments do not fit the tool', ...problems.map((one) => `- ${one}`)].join('\n'))
  const { workflow } = tool
  c.set('teamId', workflow.teamId)
  const inputWarning = c.get('largeNumbers')
  const started = await startTool(c.get('scope'), tool, args, { key, inputWarning, ...c.get('trace') })
  const { executionId } = started
  // Outputs that will not be kept stay for as long as a call waits for them.
  const held = started.fresh && !workflow.settings.saveData.outputs
  if (held) await awaitAnswer(deps.store, executionId)
  try {
    return await awaitOutcome(deps, c, started, { seats, report })
  } finally {
    if (held)
      await leaveAnswer(deps.store, executionId).catch((err) =>
        c.get('log').warn({ err, executionId }, 'could not remove the answer of a tool'),
      )
  }
}

/** The faults of the arguments, each with its path. Throws UNAVAILABLE if that cannot be found out now. */
async function fitArguments(
  { evaluator }: ApiDeps,
  c: Context<AppEnv>,
  { workflow, config }: WorkflowTool,
  args: Record<string, unknown>,
): Promise<string[]> {
  if (!evaluator) throw new Fault('UNAVAILABLE', 'This process checks no arguments', { retryAfter: 5 })
  const execution = { workflowId: workflow.id }
  const bindings = { input: null, nodes: {}, trigger: null, vars: {}, execution }
  const own = evaluator.for({ team: workflow.teamId, patienceMs: PATIENCE_MS })
  const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(PATIENCE_MS)])
  try {
    return await checkJson({ evaluator: own, bindings, signal }, config.inputSchema, args)
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error
    const { type, message } = error
    if (type === EXPRESSIONS_BUSY || type === EXPRESSIONS_DOWN)
      throw new Fault('UNAVAILABLE', `${message}: try again`, { retryAfter: 1 })
    throw new Fault('CONFLICT', `The arguments cannot be checked: ${message}`)
  }
}

async function awaitOutcome(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { executionId, fresh, queued }: StartedExecution,
  { seats, report }: { seats: Seats; report: Calling['report'] },
): Promise<CallToolResult> {
  const { waitMs: ms = WAIT_MS, progressMs = PROGRESS_MS } = deps.mcp ?? {}
  const ending = awaitEnd(deps, c, executionId, { seats, ms, fresh })
  const start = fresh && !queued ? startAwaited(deps, executionId) : undefined
  const began = performance.now()
  const timer = setInterval(() => {
    const progress = Math.min(ms, performance.now() - began) / 1_000
    const message = `The execution ${executionId} goes on`
    // The client may be gone.
    report?.({ progress, total: ms / 1_000, message }).catch(() => {})
  }, progressMs)
  try {
    await ending.catch(ignoreThrottled)
    const execution = await readExecution(c.get('scope'), executionId, deps.temporalUi)
    const { status, outputData, errorMessage } = execution
    if (!isEnded(status)) return tellLater(executionId, status)
    start?.end(status)
    if (status !== 'SUCCESS')
      return refuseCall(
        `The execution ${executionId} ended ${status}: ${errorMessage ?? 'without a message'}`,
        {
          executionId,
          status,
          error: errorMessage,
        },
      )
    const told = { executionId, status, output: outputData }
    const text = JSON.stringify(told)
    return isTooLarge(text) ? tellLarge(executionId, text.length) : tell(told)
  } finally {
    clearInterval(timer)
    void start?.leave()
  }
}

/** The execution has been accepted: with too many waiting requests it is answered without a wait. */
function ignoreThrottled(error: unknown): void {
  if (!(error instanceof Fault && ['THROTTLED', 'UNAVAILABLE'].includes(error.code))) throw error
}

function tellLater(executionId: string, status: string): CallToolResult {
  const message =
    `The execution goes on. Its end is read with the tool ${OWN_TOOL}read_execution and the id ${executionId}; to call ` +
    'this tool again would start another one.'
  return tell({ executionId, status, message })
}

function tellLarge(executionId: string, characters: number): CallToolResult {
  const message = writeRefusal(
    `The output has ${characters} characters, which is too much for a tool. It is read over the HTTP API, at ` +
      `/api/executions/${executionId}`,
  )
  return tell({ executionId, status: 'SUCCESS', message })
}
