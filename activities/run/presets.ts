import { packOutput } from '../../db/records/outputs.ts'
import type { Store } from '../../db/scope.ts'
import { presetOutputs } from '../../workflows/graph/compile.ts'
import { presetSingle } from '../../workflows/graph/single.ts'
import type { Envelope, Plan, Presets } from '../../workflows/run/plan.ts'

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
  }
  return execution.onlyNode === null ? presetOutputs(plan, packed) : presetSingle(plan, packed, input)
}
