import { openEnvelope } from '../../db/executions/records/outputs.ts'
import { compilePlan, presetOutputs } from '../../workflows/graph/compile.ts'
import type { Plan, Presets } from '../../workflows/run/plan.ts'
import { createWorker, simulateSteps } from './activities.ts'
import { findFaults } from './compare.ts'
import { drawSample, type Sample, START } from './graphs.ts'
import { interpret, TooLarge } from './interpreter.ts'
import { createRandom } from './random.ts'
import type { Sandbox } from './sandbox.ts'
import { carryChain } from './temporal.ts'
import { createTimeline } from './timeline.ts'
import { createWorld, EXECUTION, WORKFLOW } from './world.ts'

/** 2026-01-01T00:00:00Z */
const BEGIN = 1_767_225_600_000

/** What became of a sample: what is wrong with its run, and how much was done. */
export type Verdict = { faults: string[]; runs: number; events: number }

export function sampleOf(seed: number): Sample {
  return drawSample(seed, createRandom(seed))
}

/**
 * Executes a sample and compares the run with what the interpreter expects. The same sample always goes the
 * same way: clock and chance are those of its seed meanwhile.
 */
export async function judge(
  sandbox: Sandbox,
  sample: Sample,
  spoil = (plan: Plan): Plan => plan,
): Promise<Verdict> {
  const random = createRandom(sample.seed ^ 0x5eed)
  const timeline = createTimeline(BEGIN)
  const { now, random: chance } = { now: Date.now, random: Math.random }
  Date.now = timeline.now
  Math.random = random.next
  const restoreSteps = simulateSteps()
  try {
    const world = createWorld(sample, random)
    const worker = createWorker(sample, world, random)
    const expected = interpret(sample, world.findFate)
    const input = {
      plan: spoil(planOf(sample)),
      context: contextOf(),
      input: { v: sample.data, bytes: 10 },
      timeoutMs: sample.timeoutMs,
    }
    const histories = await carryChain({ sandbox, sample, world, worker, timeline }, random, input)
    world.mayBeAway = false
    const open = (envelope: Parameters<typeof openEnvelope>[2]) =>
      openEnvelope(world.store, EXECUTION, envelope)
    const faults = await findFaults({ sample, expected, histories, calls: world.calls, open })
    const events = histories.reduce((sum, { events }) => sum + events.length, 0)
    return { faults, runs: histories.length, events }
  } catch (error) {
    if (error instanceof TooLarge) return { faults: [], runs: 0, events: 0 }
    return { faults: [String((error as Error).stack ?? error)], runs: 0, events: 0 }
  } finally {
    Date.now = now
    Math.random = chance
    restoreSteps()
  }
}

function contextOf() {
  const workflow = { workflowId: WORKFLOW, workflowName: 'simulated', version: 1 }
  return { id: EXECUTION, ...workflow, trigger: 'MANUAL', timezone: 'UTC' }
}

function planOf({ graph, pinned, inlineBytes }: Sample): Plan {
  const work = compilePlan(graph, { workflowId: WORKFLOW, version: 1, triggerNodeId: START })
  let step = work.next()
  while (!step.done) step = work.next()
  const plan = inlineBytes === null ? step.value : { ...step.value, inlineBytes }
  const given: Presets = Object.create(null)
  for (const [id, { output, handle }] of Object.entries(pinned))
    given[id] = { output: { v: output, bytes: JSON.stringify(output).length }, handle, from: 'PINNED' }
  return presetOutputs(plan, given)
}
