import { expect, test } from 'vitest'
import type { Graph } from '../../../../workflows/graph/graph.ts'
import { checkChat, findReplyNode, isAgentGraph } from '../../../../workflows/graph/triggers/chat.ts'
import { edges } from '../../../support/engine/graphs.ts'

/** Nodes as `id TYPE`, with more of them by id. */
function graphOf(nodes: string[], joins: string[], more: Record<string, object> = {}): Graph {
  return {
    nodes: nodes.map((text) => {
      const [id, type] = text.split(' ')
      return { id, type, name: id, onError: 'FAIL', config: {}, ...more[id!] }
    }),
    edges: edges(...joins).map((edge) => ({ sourceHandle: null, ...edge })),
  } as never
}

const judge = (...given: Parameters<typeof graphOf>) => {
  const graph = graphOf(...given)
  return [findReplyNode(graph)?.id, checkChat(graph).map(({ path, message }) => `${path}: ${message}`)]
}

test('the node that replies is the only one that leads to no other, or the one that is marked', () => {
  expect(judge(['c CHAT_TRIGGER', 'a LLM'], ['c -> a'])).toEqual(['a', []])
  expect(judge(['c CHAT_TRIGGER', 'a LLM', 'b SET', 'd AI_AGENT'], ['c -> a', 'a -> b', 'b -> d'])).toEqual([
    'd',
    [],
  ])
  const two: [string[], string[]] = [
    ['c CHAT_TRIGGER', 'a LLM', 'b LLM'],
    ['c -> a', 'c -> b'],
  ]
  const [none, problems] = judge(...two)
  expect([none, problems]).toEqual([
    undefined,
    [
      'nodes[1].config.reply: "a", "b" could be the reply in a chat: mark the one that is with reply: true in its config',
      'nodes[2].config.reply: "a", "b" could be the reply in a chat: mark the one that is with reply: true in its config',
    ],
  ])
  expect(judge(...two, { b: { config: { reply: true } } })).toEqual(['b', []])
  // Also if it leads to another one.
  const chain: [string[], string[]] = [
    ['c CHAT_TRIGGER', 'a LLM', 'b LLM'],
    ['c -> a', 'a -> b'],
  ]
  expect(judge(...chain, { a: { config: { reply: true } } })).toEqual(['a', []])
  const both = { a: { config: { reply: true } }, b: { config: { reply: true } } }
  expect(judge(...chain, both)).toMatchObject([
    undefined,
    [expect.stringContaining('only one node'), expect.anything()],
  ])
  // What no chat leads to does not count, but a mark there is a mistake: another node would reply.
  const manual = ['c CHAT_TRIGGER', 'm MANUAL_TRIGGER', 'a LLM', 'b LLM']
  expect(judge(manual, ['c -> a', 'm -> b'])).toEqual(['a', []])
  expect(judge(manual, ['c -> a', 'm -> b'], { b: { config: { reply: true } } })[1]).toEqual([
    'nodes[3].config.reply: is true, but no CHAT_TRIGGER leads to the node: it cannot reply in a chat',
  ])
  const off = { b: { disabled: true, config: { reply: true } } }
  expect(judge(manual, ['c -> a', 'm -> b'], off)).toEqual(['a', []])
  expect(judge(['m MANUAL_TRIGGER', 'b LLM'], ['m -> b'], { b: { config: { reply: true } } })[1]).toEqual([])
  expect(judge(...two, { b: { disabled: true } })).toEqual(['a', []])
})

test('what cannot be a reply is named', () => {
  const loop = ['c CHAT_TRIGGER', 'l FOR_EACH', 'a LLM']
  expect(judge(loop, ['c -> l'], { a: { parentId: 'l' } })).toEqual([
    undefined,
    ['nodes[2]: the node that replies in a chat must not be inside a loop: there would be many replies'],
  ])
  // One in a loop leads to what comes after the loop.
  expect(judge([...loop, 'b LLM'], ['c -> l', 'l -> b'], { a: { parentId: 'l' } })).toEqual(['b', []])
  for (const more of [
    { perItem: true },
    { allItems: true },
    { config: { output: 'json' } },
    { config: { into: 'x' } },
  ])
    expect(judge(['c CHAT_TRIGGER', 'a LLM'], ['c -> a'], { a: more })).toMatchObject([
      undefined,
      [expect.anything()],
    ])
  expect(judge(['c CHAT_TRIGGER', 'd CHAT_TRIGGER', 'a LLM'], ['c -> a', 'd -> a'])[1]).toEqual([
    'nodes[1]: is a second CHAT_TRIGGER: an active workflow can have one',
  ])
})

test('a workflow without a chat, or whose chat reaches no model, is no agent', () => {
  expect(isAgentGraph(graphOf(['m MANUAL_TRIGGER', 'a LLM'], ['m -> a']))).toBe(false)
  expect(isAgentGraph(graphOf(['c CHAT_TRIGGER', 'a SET', 'b CLASSIFY'], ['c -> a', 'a -> b']))).toBe(false)
  expect(isAgentGraph(graphOf(['c CHAT_TRIGGER', 'a SET', 'b AI_AGENT'], ['c -> a', 'a -> b']))).toBe(true)
  expect(isAgentGraph(graphOf(['c CHAT_TRIGGER', 'a LLM'], ['c -> a'], { c: { disabled: true } }))).toBe(
    false,
  )
})
