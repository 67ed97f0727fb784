import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())
const { teamId, admin } = running
const other = await running.otherTeam()
const viewer = await running.token('VIEWER')

const evaluate = (json: object, as = admin) =>
  running.call('POST', '/api/expressions/evaluate', as, { teamId, ...json })
const resultOf = async (json: object) => {
  const { status, body } = await evaluate(json)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER' },
    { id: 'set', type: 'SET', config: { values: { n: '{{ $input.n * 2 }}', big: 'x'.repeat(100_000) } } },
    { id: 'off', type: 'SET', config: { values: {} }, disabled: true },
    { id: 'last', type: 'SET', config: { values: { sum: '{{ $input.n + $nodes.set.n }}' } } },
    { id: 'each', type: 'FOR_EACH', config: { items: [{ a: 'x' }, { a: 'y' }] } },
    { id: 'body', parentId: 'each', type: 'SET', config: { values: { a: '{{ $item.a }}' } } },
    { id: 'after', parentId: 'each', type: 'SET', config: { values: { a: 1 } } },
    { id: 'if', type: 'IF_ELSE', config: { condition: 'false' } },
    { id: 'never', type: 'SET', config: { values: { a: 1 } } },
  ],
  edges: [
    { source: 'start', target: 'set' },
    { source: 'set', target: 'off' },
    { source: 'off', target: 'last' },
    { source: 'last', target: 'each' },
    { source: 'body', target: 'after' },
    { source: 'last', target: 'if' },
    { source: 'if', sourceHandle: 'true', target: 'never' },
  ],
}
const workflowId = await running.create(graph)
const executionId = await running.execute(workflowId, { n: 21 })
expect((await running.ended(executionId)).status).toBe('SUCCESS')

test('evaluates an expression, a text, and a condition, with given data', async () => {
  const data = { n: 2, email: 'a@b.c' }
  const nothing = { error: null, warnings: [], console: [], expressions: 2 }
  expect(await resultOf({ expression: '$input.n * 2', data })).toEqual({ value: 4, ...nothing })
  expect(await resultOf({ expression: '{{ $trigger.n * 2 }}', data })).toEqual({ value: 4, ...nothing })
  expect(await resultOf({ expression: 'n={{ $input.n }}!', data })).toEqual({ value: 'n=2!', ...nothing })
  expect(await resultOf({ expression: '{{ $input }}', data: [1, null] })).toEqual({
    value: [1, null],
    ...nothing,
  })
  expect(await resultOf({ expression: '$input', data: null })).toEqual({ value: null, ...nothing })
  expect(await resultOf({ expression: '1 + 1' })).toEqual({ value: 2, ...nothing })
  const condition = { as: 'condition', data }
  expect(await resultOf({ expression: '$input.n = 2', ...condition })).toEqual({ value: true, ...nothing })
  expect(await resultOf({ expression: '{{ $input.email }}', ...condition })).toEqual({
    value: true,
    ...nothing,
    warnings: ['the condition gave "a@b.c", which counts as true: compare it with something'],
  })
  expect(await resultOf({ expression: '$input.emial', data })).toEqual({
    value: null,
    ...nothing,
    warnings: ['`$input.emial`: no such field; there are `n`, `email`'],
  })
  expect(await resultOf({ expression: '$not($input.x)', data, expressions: 1 })).toMatchObject({
    value: null,
  })
})

test('evaluates as a node of an execution does, whether it was executed or not', async () => {
  const value = async (expression: string, nodeId?: string, more: object = {}) => {
    const { value, error } = await resultOf({
      expression,
      executionId,
      ...(nodeId ? { nodeId } : {}),
      ...more,
    })
    expect(error).toBeNull()
    return value
  }
  expect(await value('$input.n + $trigger.n', 'set')).toBe(42)
  expect(await value('$input.n + $nodes.set.n', 'last')).toBe(84)
  expect(await value('{{ $length($input.big) }}', 'last')).toBe(100_000)
  expect(await value('$nodes.last.sum', 'each')).toBe(84)
  expect(await value('$input.a', 'never')).toBeNull()
  expect(await value('$nodes.last.sum', 'never')).toBe(84)
  expect(await value('$item.a & $index', 'body')).toBe('x0')
  expect(await value('$item.a & $index & $input.a', 'body', { iteration: '1' })).toBe('y1y')
  expect(await value('$item.a & $input.a', 'after', { iteration: '1' })).toBe('yy')
  expect(await value('$nodes.set.n', 'after', { iteration: '1' })).toBe(42)
  expect(await value('$input.n')).toBe(21)
  expect(await value('$input.n', 'set', { data: { n: 1 } })).toBe(1)
  expect(await value('$trigger.n', 'set', { data: { n: 1 } })).toBe(21)
  expect(await value('$execution.id', 'set')).toBe(executionId)
  expect(await value('$execution.workflowId & "," & $execution.version', undefined)).toBe(`${workflowId},1`)
  await running.call('POST', '/api/variables', admin, { teamId, key: 'region', value: 'eu' })
  expect(await value('$vars.region', 'set')).toBe('eu')
  expect((await resultOf({ expression: '$vars.region' })).value).toBe('eu')
})

test('goes by the rules of the version, and by settings.strict', async () => {
  const old = await running.create({ ...graph, expressions: 1 })
  const expression = '$not($input.x)'
  expect(await resultOf({ expression, workflowId: old, data: {} })).toMatchObject({
    value: null,
    expressions: 1,
  })
  expect(await resultOf({ expression, workflowId, data: {} })).toMatchObject({ value: true, expressions: 2 })
  const strict = await running.create({ ...graph, settings: { strict: true } })
  expect(await resultOf({ expression: '$input.x', workflowId: strict, data: {} })).toMatchObject({
    value: null,
    error: {
      type: 'ExpressionFailed',
      message: 'expression {{ $input.x }}: `$input.x`: no such field; there are none (settings.strict)',
    },
  })
})

test('what fails is the result, with the limits of a node; what is asked wrongly is refused', {
  tags: 'long',
}, async () => {
  const failed = async (expression: string) => (await resultOf({ expression, data: {} })).error
  expect(await failed('1 +')).toMatchObject({ type: 'ExpressionFailed' })
  expect(await failed('$error("no")')).toMatchObject({
    type: 'ExpressionFailed',
    message: expect.stringContaining('no'),
  })
  expect(await failed('$fetch')).toMatchObject({
    message: expect.stringContaining('unknown variable $fetch'),
  })
  expect(await failed('($f := function() { $f() }; $f())')).toMatchObject({ type: 'ExpressionLimit' })
  expect(await failed('$pad("x", 100000000)')).toMatchObject({ type: 'ExpressionLimit' })
  const nobody = crypto.randomUUID()
  const expression = '1'
  for (const [json, status] of [
    [{}, 400],
    [{ expression: '' }, 400],
    [{ expression, as: 'x' }, 400],
    [{ expression, nodeId: 'set' }, 400],
    [{ expression, executionId, iteration: 'x' }, 400],
    [{ expression, executionId, workflowId: await running.create(graph) }, 400],
    [{ expression, executionId: nobody }, 404],
    [{ expression, workflowId: nobody }, 404],
    [{ expression, executionId, nodeId: 'nobody' }, 404],
    [{ expression, workflowId, nodeId: 'nobody' }, 404],
  ] as const)
    expect((await evaluate(json)).status, JSON.stringify(json)).toBe(status)
})

test('whoever may read the team may, and nobody reads the executions and workflows of another one', async () => {
  expect((await evaluate({ expression: '1', executionId }, viewer)).status).toBe(200)
  expect((await evaluate({ expression: '1' }, other.cookie)).status).toBe(403)
  for (const place of [{ executionId }, { workflowId }])
    expect((await evaluate({ expression: '1', ...place, teamId: other.teamId }, other.cookie)).status).toBe(
      404,
    )
  expect((await running.call('POST', '/api/expressions/evaluate', undefined, { teamId })).status).toBe(401)
})

test('an execution whose values are not kept is refused', async () => {
  const settings = { saveData: { inputs: true, outputs: false } }
  const hidden = await running.execute(await running.create({ ...graph, settings }), { n: 1 })
  await running.ended(hidden)
  expect((await evaluate({ expression: '$input', executionId: hidden, nodeId: 'set' })).status).toBe(409)
})

test('a text with = names nodes by their names, too, and what it writes to the console is shown', async () => {
  const named = await running.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      { id: 'f', name: 'Fetch it', type: 'SET', config: { values: { v: [1, 2] } } },
      { id: 'g', type: 'SET', config: { values: { n: '={{ (console.log("in a node"), 1) }}' } } },
    ],
    edges: [
      { source: 'start', target: 'f' },
      { source: 'f', target: 'g' },
    ],
  })
  const run = await running.execute(named, {})
  await running.ended(run)
  const place = { executionId: run, nodeId: 'g' }
  for (const expression of ["={{ $('Fetch it').first().json.v }}", "={{ $('f').item.json.v.map((n) => n) }}"])
    expect(await resultOf({ expression, ...place })).toMatchObject({ value: [1, 2], error: null })
  const written = await resultOf({ expression: '={{ (console.log("hey"), $json.v.length) }}', ...place })
  expect(written).toMatchObject({ value: 2, console: [{ level: 'log', text: 'hey' }] })
  const { body } = await running.call('GET', `/api/executions/${run}`, admin)
  const record = body.nodeExecutions.find(({ nodeId }: { nodeId: string }) => nodeId === 'g')
  expect(record.console).toEqual([{ level: 'log', text: 'in a node' }])
})

test('a text with very many expressions that are no JavaScript is given up', async () => {
  const { error } = await resultOf({ expression: `=${'{{ /* }}'.repeat(12_000)}` })
  expect(error.message).toContain('has too many expressions that are no JavaScript')
})
