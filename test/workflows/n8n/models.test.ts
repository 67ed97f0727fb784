import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { UNNAMED_CREDENTIAL } from '../../../workflows/n8n/ai/asking.ts'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { repairGraph } from '../../../workflows/n8n/repair.ts'
import { atOnce } from '../../support/atonce.ts'

const CREDENTIAL = randomUUID()

type Part = { name: string; type: string; kind: string; parameters?: object; credentials?: object }

/** A workflow with one node that asks a model, and nodes that are attached to it. */
function documentOf(type: string, parameters: object, parts: Part[] = [MODEL], typeVersion = 1.7) {
  const node = (name: string, of: string, more: object) => ({
    ...{ name, type: `@n8n/n8n-nodes-langchain.${of}`, typeVersion: 1, position: [0, 0], parameters: {} },
    ...more,
  })
  const connections: Record<string, object> = {
    Chat: { main: [[{ node: 'Ask', type: 'main', index: 0 }]] },
  }
  for (const { name, kind } of parts)
    connections[name] = { [kind]: [[{ node: 'Ask', type: kind, index: 0 }]] }
  return {
    name: 'models',
    nodes: [
      node('Chat', 'chatTrigger', {}),
      node('Ask', type, { parameters, typeVersion }),
      ...parts.map(({ name, type: of, kind: _, ...more }) => node(name, of, more)),
    ],
    connections,
  }
}

const MODEL: Part = {
  name: 'Model',
  type: 'lmChatOpenAi',
  kind: 'ai_languageModel',
  parameters: { model: { __rl: true, value: 'gpt-4o-mini' }, options: { temperature: 0.2, topP: 0.5 } },
  credentials: { openAiApi: { id: 'abc', name: 'Our OpenAI' } },
}

function convert(document: object, known = 'abc') {
  const found = (key: string) => (key === known ? CREDENTIAL : undefined)
  const converted = atOnce(convertWorkflow(document, () => undefined, found))!
  const { report } = converted
  const repair = repairGraph(
    { ...converted, expressions: 2 },
    (problem) => void report.problems.push(problem),
    randomUUID,
  )
  const { graph, problems } = atOnce(repair)
  expect(problems).toEqual([])
  return { report, graph, ask: graph.nodes.find(({ name }) => name === 'Ask' || name === 'Ask (start)')! }
}

const told = ({ report }: ReturnType<typeof convert>) => JSON.stringify(report.problems)

test('a chain becomes an LLM with its attached model, which is no node of its own', () => {
  const found = convert(
    documentOf('chainLlm', { promptType: 'define', text: '=Hello {{ $json.chatInput }}' }),
  )
  expect(found.ask).toMatchObject({
    type: 'LLM',
    config: {
      credentialId: CREDENTIAL,
      model: 'gpt-4o-mini',
      temperature: 0.2,
      prompt: '=Hello {{ $json.chatInput }}',
    },
  })
  expect(found.graph.nodes.map(({ type }) => type).sort()).toEqual(['CHAT_TRIGGER', 'LLM', 'TRANSFORM'])
  expect(found.report.mapped).toContainEqual(expect.objectContaining({ node: 'Model', as: 'LLM' }))
  // An option of the model that there is none for here.
  expect(told(found)).toContain('topP')
})

test('without a credential the node has none, and a problem says which one it needs', () => {
  const without = convert(documentOf('chainLlm', { text: 'Hi', promptType: 'define' }), 'other')
  expect(without.ask.type).toBe('LLM')
  expect(without.ask.config.credentialId).toBe(UNNAMED_CREDENTIAL)
  expect(without.report.problems).toContainEqual(
    expect.objectContaining({
      node: 'Ask',
      kind: 'credential',
      message: expect.stringMatching(/Choose.*abc/),
    }),
  )
  const byName = convert(documentOf('agent', {}), 'Our OpenAI')
  expect(byName.ask.config.credentialId).toBe(CREDENTIAL)
  expect(told(byName)).not.toContain('credential')
})

test("a model without a name has n8n's of that version of the node, and the report says which", () => {
  const of = (type: string, parameters: object, typeVersion: number) => {
    const model = { ...MODEL, type, parameters, typeVersion } as Part
    const found = convert(documentOf('chainLlm', { promptType: 'define', text: 'Hello' }, [model]))
    return [found.ask.config.model, told(found)]
  }
  for (const [type, version, model] of [
    ['lmChatOpenAi', 1, 'gpt-5-mini'],
    ['lmChatAnthropic', 1.2, 'claude-3-5-sonnet-20240620'],
    ['lmChatAnthropic', 1.5, 'claude-sonnet-4-6'],
    ['lmChatGoogleGemini', 1, 'gemini-2.5-flash'],
  ] as const)
    expect(of(type, {}, version)).toEqual([model, expect.stringContaining(`takes \\"${model}\\" then`)])
  // n8n refuses a name that is empty, and a vendor without a default.
  expect(of('lmChatOpenAi', { model: '' }, 1)[1]).toMatch(/its model has no name/)
  expect(of('lmChatAzureOpenAi', {}, 1)[1]).toMatch(/its model has no name/)
})

test('what is attached and has no counterpart is reported', () => {
  const memory = { name: 'Memory', type: 'memoryBufferWindow', kind: 'ai_memory' }
  const found = convert(documentOf('agent', { options: { systemMessage: 'Be kind' } }, [MODEL, memory]))
  expect(found.ask.config).toMatchObject({ system: 'Be kind' })
  expect(found.report.problems).toContainEqual(
    expect.objectContaining({ node: 'Memory', message: expect.stringContaining('chatHistoryTokens') }),
  )
})

test('a parser becomes a schema; classifiers leave by their categories; extractors have a schema', () => {
  const parser = {
    name: 'Parser',
    type: 'outputParserStructured',
    kind: 'ai_outputParser',
    parameters: { jsonSchemaExample: '{"city": "Oslo", "tags": ["a"]}' },
  }
  const chain = convert(documentOf('chainLlm', { hasOutputParser: true }, [MODEL, parser]))
  expect(chain.ask.config).toMatchObject({
    output: 'json',
    into: { field: 'output', keep: false },
    schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city', 'tags'] },
  })
  const categories = {
    categories: [{ category: 'Bug report', description: 'it breaks' }, { category: 'Praise' }],
  }
  const classifier = convert(
    documentOf('textClassifier', { inputText: 'x', categories, options: { fallback: 'other' } }),
  )
  expect(classifier.ask).toMatchObject({
    type: 'CLASSIFY',
    config: { categories: [{ name: 'Bug report' }, { name: 'Praise' }] },
  })
  const attributes = {
    attributes: [{ name: 'age', type: 'number', description: 'in years', required: true }],
  }
  const extractor = convert(documentOf('informationExtractor', { text: 'x', attributes }))
  expect(extractor.ask).toMatchObject({
    type: 'EXTRACT',
    config: {
      schema: { properties: { age: { type: 'number', description: 'in years' } }, required: ['age'] },
    },
  })
  expect(convert(documentOf('sentimentAnalysis', { inputText: 'x' })).ask.type).toBe('CLASSIFY')
  expect(convert(documentOf('chainSummarization', {})).ask.type).toBe('SUMMARIZE')
})
