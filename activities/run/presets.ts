import { packOutput } from '../../db/executions/records/outputs.ts'
import type { Store } from '../../db/scope.ts'
import { presetOutputs } from '../../workflows/graph/compile.ts'
import { readPart } from '../../workflows/graph/part.ts'
import { presetSingle } from '../../workflows/graph/single.ts'
import type { BegunAgent, Envelope, Plan, Presets } from '../../workflows/run/plan.ts'

type Begun = Omit<BegunAgent, 'from'>

/** The most for all presets. They travel in the plan with all else; Temporal accepts 2 MB at once. */
const MAX_PRESET_BYTES = 200_000

/** The plan of an execution with its presets applied; big presets become references. */
export async function applyPresets(
  store: Store,
  execution: { id: string; given: unknown; onlyNode: string | null },
  plan: Plan,
  input: Envelope,
): Promise<Plan> {
  const presets = (execution.given ?? {}) as Presets
  const ids = Object.keys(presets)
  if (ids.length === 0 && execution.onlyNode === null) return plan
  const maxBytes = Math.min(plan.inlineBytes, Math.floor(MAX_PRESET_BYTES / ids.length))
  const packed: Presets = Object.create(null)
  for (const [id, preset] of Object.entries(presets)) {
    const { output } = preset
    const fits = 'ref' in output || output.bytes <= maxBytes
    packed[id] = fits
      ? preset
      : { ...preset, output: await packOutput(store, execution.id, output.v, maxBytes) }
    if (preset.begun) packed[id].begun = await packBegun(store, execution.id, preset.begun)
  }
  return readPart(execution.onlyNode).onlyNode === null
    ? presetOutputs(plan, packed)
    : presetSingle(plan, packed, input)
}

/** What the record of a step that is taken over shows travels inline up to this many bytes. */
const STEP_BYTES = 100

/** An agent that goes on, with what its earlier steps show as references. */
async function packBegun(store: Store, executionId: string, { agent, steps }: Begun): Promise<Begun> {
  const pack = async (envelope: Envelope) =>
    'ref' in envelope || envelope.bytes <= STEP_BYTES
      ? envelope
      : packOutput(store, executionId, envelope.v, STEP_BYTES)
  const packed: Begun['steps'] = []
  for (const step of steps) {
    const output = step.output && (await pack(step.output))
    packed.push({ ...step, input: await pack(step.input), output })
  }
  return { agent, steps: packed }
}
