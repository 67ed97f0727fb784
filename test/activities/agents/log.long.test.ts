import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { startAgents, takes } from '../../support/agents/agents.ts'
import { keep } from '../../support/keep.ts'

const agents = await keep(startAgents())

const big = (bytes: number) => ({
  type: 'CODE',
  name: 'big',
  description: 'Says much',
  parameters: takes('n'),
  code: `return { n: $args.n, text: "x".repeat(${bytes}) }`,
})
const calls = (...numbers: number[]) => ({
  tools: numbers.map((n) => ({ id: `c${n}`, name: 'big', args: { n: String(n) } })),
})

test('of a long conversation each turn stores what is new, and the model is told all of it in its order', {
  tags: 'long',
}, async () => {
  const TURNS = 66
  const { run, agent } = await agents.runAgent(
    [big(400)],
    (_, n) => (n < TURNS ? calls(n) : { text: 'Done.' }),
    { config: { maxSteps: 200 } },
  )
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  const told = agents.toldIn(TURNS) as { n: string }[]
  expect(told.map(({ n }) => n)).toEqual(Array.from({ length: TURNS }, (_, n) => String(n)))
  const conversation = JSON.stringify(agents.vendor.calls[TURNS]!.body.messages).length
  const { rows } = await sql<{ bytes: number }>`
    select sum(bytes)::int as bytes from blobs where execution_id = ${run.id}`.execute(agents.store.db)
  // The results of the tools, the conversation, its parts joined twice. Stored whole each turn it would be 33 times as much.
  expect(rows[0]!.bytes).toBeLessThan(6 * conversation)
})

test('a conversation that becomes too long fails the agent before its model is asked again, and says what to do', {
  tags: 'long',
}, async () => {
  const { run, agent } = await agents.runAgent(
    [big(60_000)],
    calls(...Array.from({ length: 40 }, (_, n) => n)),
    { config: { maxSteps: 200 }, node: { onError: 'CONTINUE' } },
  )
  expect(run.status).toBe('SUCCESS')
  expect(agent.outputData).toMatchObject({
    error: {
      type: 'OutputTooLarge',
      message: expect.stringMatching(
        /has 24\d{5} bytes; it may have 2000000\. Let its tools answer with less/,
      ),
    },
  })
  expect(agents.vendor.calls).toHaveLength(1)
})
