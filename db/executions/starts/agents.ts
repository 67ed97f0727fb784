import { sql } from 'kysely'
import { moveAgent, taskOf } from '../../../workflows/run/agents.ts'
import type { Agent, BegunAgent, Envelope, TakenStep } from '../../../workflows/run/plan.ts'
import { joinStep } from '../../../workflows/run/walk.ts'
import type { Store } from '../../scope.ts'

const NOTHING: Envelope = { v: {}, bytes: 2 }

type StepRow = TakenStep & { step: number; agent: { input: Envelope } | null }

/**
 * Where an agent outside of loops stopped in an ended execution, with the steps that it made. A task that was under way
 * and must not be repeated has an unknown outcome, if its tool may have been called. Undefined if the agent must begin
 * anew: it has no record, or its values were not kept.
 */
export async function readStopped(
  store: Store,
  executionId: string,
  nodeId: string,
): Promise<Omit<BegunAgent, 'from'> | undefined> {
  const { rows } = await sql<StepRow & { own: Agent | null }>`
    select step, tool, case when step is null then agent end as own, agent, output, error_message
    from node_executions where execution_id = ${executionId} and node_id = ${nodeId}
      and (iteration = '' or step is not null and iteration like '!%')
    order by step nulls first`.execute(store.db)
  const [first, ...made] = rows
  const own = first?.step === null ? first.own : null
  if (!own) return undefined
  const { paused: _, ...agent } = own
  const steps = made.filter(({ step }) => step < agent.step)
  if (steps.length !== agent.step - 1 || steps.some((step) => !step.agent)) return undefined
  const taken = steps.map(({ tool, agent: given, output, errorMessage }) => ({
    ...{ tool, input: given!.input, output, errorMessage },
  }))
  const task = taskOf(agent)
  if (!task || task.repeats || !(await wasCalled(store, executionId, joinStep(nodeId, agent.step))))
    return { agent, steps: taken }
  const message = 'The outcome of the call is unknown: its execution ended before it was answered'
  const next = moveAgent(agent, { error: { message, type: 'OutcomeUnknown' } })
  if (!('agent' in next)) return undefined
  return {
    agent: next.agent,
    steps: [...taken, { tool: task.tool, input: NOTHING, output: null, errorMessage: message }],
  }
}

/** Whether a call that is made once was begun. */
async function wasCalled({ db }: Store, executionId: string, activity: string): Promise<boolean> {
  const note = await db
    .selectFrom('messageNotes')
    .select('state')
    .where('executionId', '=', executionId)
    .where('activity', '=', activity)
    .executeTakeFirst()
  return note !== undefined
}

/** The envelopes of an agent that goes on. */
export function envelopesOf({ agent, steps }: Omit<BegunAgent, 'from'>): Envelope[] {
  const settled = agent.settled.flatMap((task) => ('output' in task ? [task.output] : []))
  const shown = steps.flatMap(({ input, output }) => (output ? [input, output] : [input]))
  const logged = (agent.log ?? []).map(({ entries }) => entries)
  return [...(agent.state ? [agent.state] : []), ...logged, ...settled, ...shown]
}
