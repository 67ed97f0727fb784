import { packOutput } from '../db/blobs.ts'
import type { Store } from '../db/scope.ts'
import { giveAlone } from '../workflows/alone.ts'
import { type Envelope, type Given, giveOutputs, type Plan } from '../workflows/plan.ts'

/** They travel in the plan, beside all that a run carries along: Temporal takes 2 MB at once. */
const GIVEN_BUDGET = 200_000

/** The plan of an execution with the outputs that it was given; big ones become references. */
export async function applyGiven(
  store: Store,
  execution: { id: string; given: unknown; onlyNode: string | null },
  plan: Plan,
  input: Envelope,
): Promise<Plan> {
  const given = (execution.given ?? {}) as Given
  const ids = Object.keys(given)
  if (ids.length === 0 && execution.onlyNode === null) return plan
  const most = Math.min(plan.inlineBytes, Math.floor(GIVEN_BUDGET / ids.length))
  const packed: Given = Object.create(null)
  for (const [id, gift] of Object.entries(given)) {
    const { output } = gift
    const fits = 'ref' in output || output.bytes <= most
    packed[id] = fits ? gift : { ...gift, output: await packOutput(store, execution.id, output.v, most) }
  }
  return execution.onlyNode === null ? giveOutputs(plan, packed) : giveAlone(plan, packed, input)
}
