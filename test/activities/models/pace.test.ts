import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { callRunTool } from '../../../activities/agents/tools/run.ts'
import { readAnswer } from '../../../activities/models/answer.ts'
import type { Vendor } from '../../../activities/models/failures.ts'
import type { NodeContext } from '../../../activities/nodes/kit/node.ts'
import type { ToolOf } from '../../../workflows/nodes/tools.ts'

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const FINISH = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage }

/** Reads an answer of which all is there at once. */
function read(parts: object[]) {
  const stream = new ReadableStream<LanguageModelV4StreamPart>({
    start(controller) {
      for (const part of [...parts, FINISH]) controller.enqueue(part as LanguageModelV4StreamPart)
      controller.close()
    },
  })
  const how = { vendor: { name: 'the vendor' } as Vendor, began() {}, said() {}, grow: () => true }
  return readAnswer(stream as never, how)
}

/** How often others had their turn while something was done. */
async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const tick = () => {
    turns++
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  await work()
  isOver = true
  return turns
}

const call = (id: string, input: string) => ({ type: 'tool-call', toolCallId: id, toolName: 't', input })
const LONG = `{"a":[${'{},'.repeat(340_000)}{}]}`

test('calls of one id get ids of their own, in a time that grows with their number only', async () => {
  const { toolCalls } = await read(
    ['a', 'a', 'a-2', 'a', '', '', 'call', 'call-2'].map((id) => call(id, '{}')),
  )
  const ids = toolCalls.map(({ id }) => id)
  expect(ids.slice(0, 2)).toEqual(['a', 'a-2'])
  expect(new Set(ids).size).toBe(8)
  const before = process.cpuUsage()
  const many = await read(Array.from({ length: 20_000 }, () => call('a', '{}')))
  const { user, system } = process.cpuUsage(before)
  expect(new Set(many.toolCalls.map(({ id }) => id)).size).toBe(20_000)
  // Looked for from the beginning each time, they took 20 s.
  expect((user + system) / 1_000).toBeLessThan(3_000)
})

test.each([
  [
    '400,000 pieces of text',
    Array.from({ length: 400_000 }, () => ({ type: 'text-delta', id: '1', delta: 'abcd' })),
  ],
  ['arguments of a megabyte', [call('a', LONG)]],
])('%s that come at once are read in turns with what others do', async (_, parts) => {
  expect(await countTurns(() => read(parts))).toBeGreaterThan(3)
})

test('RUN writes an output of megabytes in turns with what others do', async () => {
  const rows = Array.from({ length: 400_000 }, (_, i) => ({ i }))
  const context = { bindings: { nodes: { list: { rows } } } } as unknown as NodeContext
  const tool = { type: 'RUN' as const, name: 'run', nodes: ['list'] } satisfies ToolOf<'RUN'>
  let shown: unknown
  const turns = await countTurns(async () => {
    shown = await callRunTool(context, tool, { node: 'list', from: 10 })
  })
  expect(turns).toBeGreaterThan(3)
  const whole = JSON.stringify({ rows })
  expect(shown).toEqual({ part: whole.slice(10, 32_010), from: 10, length: whole.length, keys: ['rows'] })
})
