import { expect, test } from 'vitest'
import { openFlow } from '../../../activities/models/flow.ts'

const LINE = `data: ${'x'.repeat(65_529)}`

/** Pushes pieces to a flow that is read at once, until it is over; the number of bytes that it has taken. */
async function push(piece: string, times: number): Promise<number> {
  const flow = openFlow({ name: 'A vendor', secrets: [] })
  const bytes = Buffer.from(piece)
  let taken = 0
  const reading = (async () => {
    for await (const chunk of flow.stream) taken += chunk.length
  })()
  try {
    for (let i = 0; i < times; i++) await flow.push(bytes)
  } finally {
    flow.close()
    await reading
  }
  return taken
}

test.each(['\n', '\r\n', '\n \n', '\nid: 1\n'])(
  'an event of many lines that end with %j has a limit',
  async (end) => {
    await expect(push(LINE + end, 200)).rejects.toThrow('has an event of more than 4194304 bytes')
  },
)

test.each(['\n\n', '\r\n\r\n', '\n\r\n'])('events that end with %j may be many', async (end) => {
  expect(await push(LINE + end, 200)).toBe(200 * (LINE.length + end.length))
})

test('an end that is cut in two is one', async () => {
  const flow = openFlow({ name: 'A vendor', secrets: [] })
  const reading = (async () => {
    for await (const _ of flow.stream);
  })()
  for (let i = 0; i < 200; i++)
    for (const piece of [LINE, '\r', '\n', '\r', '\n']) await flow.push(Buffer.from(piece))
  flow.close()
  await reading
})
