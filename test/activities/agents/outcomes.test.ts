import { expect, test } from 'vitest'
import { packAgentStep } from '../../../activities/agents/run.ts'
import { weighInputs } from '../../../activities/run/share.ts'
import type { AttemptInput } from '../../../workflows/run/messages.ts'
import type { Envelope } from '../../../workflows/run/plan.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const runs = createRuns(service)

async function packTask(output: unknown) {
  const id = await runs.addRun()
  const input = { context: { id }, inlineBytes: 60_000 } as unknown as AttemptInput
  const result = { kind: 'task', input: {}, output }
  const packed = await packAgentStep(service, input, { output: result })
  return { told: packed.output, whole: packed.agent!.record.output }
}

test('the next turn opens no more of a long result than its model is shown', async () => {
  const { told, whole } = await packTask({ text: 'x'.repeat(1_900_000) })
  expect(whole).toMatchObject({ ref: expect.any(String), bytes: 1_900_011 })
  expect(told.bytes).toBeLessThan(70_000)
  const short = await packTask({ text: 'x'.repeat(50_000) })
  expect(short.told).toBe(short.whole)
})

test('what a turn reads of its tools is a part of its share', () => {
  const ref = (name: string, bytes: number): Envelope => ({ ref: name, bytes }) as Envelope
  const settled = [
    { callId: 'a', output: ref('one', 60_000) },
    { callId: 'b', error: { message: 'no', type: 'Error' } },
    { callId: 'c', output: ref('two', 50_000) },
  ]
  const agent = { kind: 'turn', step: 4, state: ref('state', 1_000_000), settled }
  expect(weighInputs({ outputs: {}, agent } as unknown as AttemptInput)).toBe(1_110_000)
})
