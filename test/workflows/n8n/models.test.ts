import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { UNNAMED_CREDENTIAL } from '../../../workflows/n8n/ai/asking.ts'
import { importDocument } from './importing.ts'

const CREDENTIAL = randomUUID()

type Part = {
  name: string
  type: string
  kind: string
  parameters?: object
  credentials?: object
  typeVersion?: number
  of?: string
  input?: number
}

/** A workflow with one node that asks a model, and nodes that are attached to it. */
function documentOf(type: string, parameters: object, parts: Part[] = [MODEL], typeVersion = 1.7) {
  const node = (name: string, of: string, more: object) => ({
    ...{ name, type: `@n8n/n8n-nodes-langchain.${of}`, typeVersion: 1, position: [0, 0], parameters: {} },
    ...more,
  })
  const connections: Record<string, object> = {
    Chat: { main: [[{ node: 'Ask', type: 'main', index: 0 }]] },
  }
  for (const { name, kind, of: to = 'Ask', input = 0 } of parts)
    connections[name] = { [kind]: [[{ node: to, type: kind, index: input }]] }
  return {
    name: 'models',
    nodes: [
      node('Chat', 'chatTrigger', {}),
      node('Ask', type, { parameters, typeVersion }),
      ...parts.map(({ name, type: of, kind: _, of: _to, input: _input, ...more }) => node(name, of, more)),
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
  const { problems, report, ...graph } = importDocument(document, () => undefined, found)!
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
    typeVersion: 1.2,
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
  expect(convert(documentOf('chainSummarization', {}, [MODEL], 2)).ask.type).toBe('SUMMARIZE')
})

const SCHEMA_PARSER: Part = {
  ...{ name: 'Parser', type: 'outputParserStructured', kind: 'ai_outputParser', typeVersion: 1.2 },
  parameters: { jsonSchemaExample: '[{"city": "Oslo"}]' },
}

test('the messages of a chain come along in their order, with the images of the item', () => {
  const messageValues = [
    { message: 'Be kind' },
    { type: 'AIMessagePromptTemplate', message: '=Hello {{ $json.name }}' },
    { type: 'HumanMessagePromptTemplate', messageType: 'imageUrl', imageUrl: '={{ $json.url }}' },
    { type: 'HumanMessagePromptTemplate', message: 'And this?' },
    { type: 'HumanMessagePromptTemplate', messageType: 'imageBinary', binaryImageDataKey: 'photo' },
  ]
  const parameters = { promptType: 'define', text: 'What is it?', messages: { messageValues } }
  const { ask } = convert(documentOf('chainLlm', parameters))
  expect(ask).toMatchObject({
    type: 'LLM',
    config: {
      system: 'Be kind',
      messages: [
        { role: 'assistant', content: '=Hello {{ $json.name }}' },
        { role: 'user', files: ['={{ $json.url }}'] },
        { role: 'user', content: 'And this?' },
      ],
      prompt: 'What is it?',
      files: ['={{ $binary["photo"] }}'],
    },
  })
})

test('a second model is a fallback where n8n has one, in the order of its inputs', () => {
  const second: Part = {
    ...{ ...MODEL, name: 'Second', type: 'lmChatAnthropic', typeVersion: 1.3, input: 1 },
    parameters: { model: { value: 'claude' } },
  }
  const first = { ...MODEL, input: 0 }
  const chain = { promptType: 'define', text: 'Hello' }
  const found = convert(documentOf('chainLlm', { ...chain, needsFallback: true }, [second, first], 1.9))
  expect(found.ask.config).toMatchObject({ model: 'gpt-4o-mini', fallbacks: [{ model: 'claude' }] })
  expect(told(found)).toMatch(/have its temperature and its maxTokens/)
  expect(told(convert(documentOf('chainLlm', chain, [second, first])))).toMatch(/several models are attached/)
})

test('lists as answers, parsers that mend, and parsers of lists', () => {
  const list = convert(documentOf('chainLlm', { text: 'x' }, [MODEL, SCHEMA_PARSER]))
  expect(list.ask.config).toMatchObject({ schema: { type: 'array' }, into: { field: 'output' } })
  // The oldest parser's answer is the item itself.
  const parameters = { jsonSchema: '{"type": "object", "properties": {}}' }
  const oldest = convert(
    documentOf('chainLlm', { text: 'x' }, [MODEL, { ...SCHEMA_PARSER, typeVersion: 1, parameters }]),
  )
  expect(oldest.ask.config).not.toHaveProperty('into')
  const fixing: Part = { name: 'Fix', type: 'outputParserAutofixing', kind: 'ai_outputParser' }
  const mended = convert(
    documentOf('chainLlm', { text: 'x' }, [
      MODEL,
      fixing,
      { ...SCHEMA_PARSER, of: 'Fix' },
      { ...MODEL, name: 'Mender', of: 'Fix' },
    ]),
  )
  expect(mended.ask.config).toMatchObject({ schema: { type: 'array' } })
  expect(told(mended)).toMatch(/has a second model mend an answer/)
  const lines: Part = {
    ...{ name: 'Lines', type: 'outputParserItemList', kind: 'ai_outputParser' },
    parameters: { options: { numberOfItems: 2, separator: ',' } },
  }
  const listed = convert(documentOf('chainLlm', { promptType: 'define', text: 'Name some' }, [MODEL, lines]))
  expect(listed.ask.config.prompt).toBe(
    'Name some\nYour response should be a list of 2 items separated by "," (for example: "item1,item2")',
  )
  const shaper = listed.graph.nodes.find(({ name, type }) => name === 'Ask' && type === 'CODE')!
  expect(shaper).toMatchObject({ allItems: true, config: { mode: 'all' } })
  const { code } = shaper.config as { code: string }
  const items = (text: string) =>
    new Function('$input', code)({ all: () => [{ json: { text } }, { json: { error: 'x' } }] })
  expect(items('a, b ,c')).toEqual([
    { json: { text: 'a' } },
    { json: { text: 'b' } },
    { json: { error: 'x' } },
  ])
  expect(() => items('a')).toThrow(/Expected 2 items but got 1/)
})

test("OpenAI's node of every age: messages, answers by the newer protocol, images, completions", () => {
  const of = (parameters: object, version: number, old = false) => {
    const document = documentOf('openAi', parameters, [], version)
    const node = document.nodes.find(({ name }) => name === 'Ask')!
    if (old) node.type = 'n8n-nodes-base.openAi'
    // Without the chat it replies to nobody.
    const trigger = document.nodes.find(({ name }) => name === 'Chat')!
    trigger.type = 'n8n-nodes-base.manualTrigger'
    return convert(document, 'Ask')
  }
  const values = [
    { content: 'One' },
    { role: 'assistant', content: 'Two' },
    { role: 'system', content: 'Be brief' },
    { content: 'Three' },
  ]
  const messages = of({ modelId: { value: 'gpt' }, messages: { values }, jsonOutput: true }, 1.8)
  expect(messages.ask.config).toMatchObject({
    system: 'You are a helpful assistant designed to output JSON.',
    messages: [
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Two' },
      { role: 'system', content: 'Be brief' },
    ],
    prompt: 'Three',
    output: 'json',
    into: { field: 'message.content', dots: true },
  })
  expect(told(messages)).toMatch(/all of them at first/)
  const response = of({ modelId: { value: 'gpt' }, responses: { values: [{ content: 'Hi' }] } }, 2)
  const shaper = response.graph.nodes.find(({ name, type }) => name === 'Ask' && type === 'TRANSFORM')!
  expect(shaper.config.expression).toContain('"output_text"')
  const image = of(
    { resource: 'image', operation: 'analyze', inputType: 'base64', modelId: { value: 'gpt' } },
    1.8,
  )
  expect(image.ask.config).toMatchObject({
    prompt: "What's in this image?",
    files: ['={{ $binary["data"] }}'],
    maxTokens: 300,
    into: { field: 'content' },
  })
  const chat = of({ resource: 'chat', prompt: { messages: [{ role: 'user', content: '=Hi' }] } }, 1.1, true)
  expect(chat.ask.config).toMatchObject({ model: 'gpt-3.5-turbo', prompt: 'Hi' })
  const completion = of({ prompt: 'Once upon' }, 1, true)
  expect(completion.ask.config).toMatchObject({ model: 'gpt-3.5-turbo-instruct', prompt: 'Once upon' })
  expect(told(completion)).toMatch(/models that its vendor has switched off/)
  expect(told(of({ resource: 'assistant', operation: 'message' }, 1.8))).toMatch(/make an AI_AGENT/)
})

test("OpenAI's sound, images, moderation and files", () => {
  const of = (parameters: object, version = 1.8, old = false) => {
    const document = documentOf('openAi', parameters, [], version)
    const node = document.nodes.find(({ name }) => name === 'Ask')!
    if (old) node.type = 'n8n-nodes-base.openAi'
    document.nodes.find(({ name }) => name === 'Chat')!.type = 'n8n-nodes-base.manualTrigger'
    const found = convert(document, 'Ask')
    return { ...found, shaper: found.graph.nodes.find(({ id }) => id.endsWith('__shape')) }
  }
  const heard = of({ resource: 'audio', operation: 'transcribe', options: { language: 'de' } })
  expect(heard.ask).toMatchObject({
    type: 'AI_MEDIA',
    retry: { maxAttempts: 1 },
    config: {
      operation: 'transcribe',
      model: 'whisper-1',
      file: '={{ $binary["data"] }}',
      options: { language: 'de' },
    },
  })
  const spoken = of({
    resource: 'audio',
    input: '=Hi {{ $json.name }}',
    options: { binaryPropertyOutput: 'voice' },
  })
  expect(spoken.ask.config).toMatchObject({
    ...{ operation: 'speak', model: 'tts-1', text: '=Hi {{ $json.name }}', voice: 'alloy' },
    options: { response_format: 'mp3', speed: 1 },
  })
  expect(spoken.shaper!.config.expression).toContain('{"$binary": {"voice": {"file": $item.file}}}')
  const drawn = of({ resource: 'image', prompt: 'A dog', options: { dalleQuality: 'hd' } })
  expect(drawn.ask.config).toMatchObject({
    ...{ operation: 'image', model: 'dall-e-3', text: 'A dog' },
    options: { quality: 'hd', response_format: 'b64_json' },
  })
  const newer = of({ resource: 'image', prompt: 'A dog', modelId: { value: 'gpt-image-1' } }, 2.2)
  expect(newer.ask.config).not.toHaveProperty('options')
  const old = of({ resource: 'image', prompt: 'A dog', responseFormat: 'imageUrl' }, 1, true)
  expect(old.ask.config).toMatchObject({ model: 'dall-e-2', options: { response_format: 'url' } })
  expect(told(of({ resource: 'image', prompt: 'A dog', options: { n: 2 } }))).toMatch(
    /several images at once/,
  )
  const judged = of({ operation: 'classify', input: '={{ $json.text }}' })
  expect(judged.ask).toMatchObject({
    type: 'HTTP_REQUEST',
    config: {
      ...{ url: 'https://api.openai.com/v1/moderations', method: 'POST' },
      body: { input: '={{ $json.text }}', model: 'text-moderation-latest' },
    },
  })
  expect(judged.shaper!.config.expression).toContain('"flagged"')
  const sent = of({ resource: 'file', options: { purpose: 'batch' } })
  expect(sent.ask.config).toMatchObject({ bodyType: 'multipart', body: { purpose: 'batch' } })
  expect(of({ resource: 'file', operation: 'list' }).shaper).toMatchObject({ type: 'CODE' })
  const gone = of({ resource: 'file', operation: 'deleteFile', fileId: { value: '={{ $json.id }}' } })
  expect(gone.ask.config).toMatchObject({
    ...{ method: 'DELETE', url: '=https://api.openai.com/v1/files/{{ $json.id }}' },
  })
})

test('summaries of texts, of files of the item, and of what loaders give', () => {
  const of = (parameters: object, parts: Part[] = [], version = 2) =>
    convert(documentOf('chainSummarization', parameters, [MODEL, ...parts], version))
  expect(of({}).ask).toMatchObject({ type: 'SUMMARIZE', config: { input: '={{ JSON.stringify($json) }}' } })
  const file = of({ operationMode: 'nodeInputBinary', options: { binaryDataKey: 'paper' } })
  expect(file.ask).toMatchObject({
    type: 'EXTRACT_FROM_FILE',
    config: { file: '={{ $binary["paper"] }}', format: 'auto', item: { field: 'text' } },
  })
  const summary = file.graph.nodes.find(({ name, type }) => name === 'Ask' && type === 'SUMMARIZE')
  expect(summary).toMatchObject({ perItem: true, config: { into: { field: 'response.text' } } })
  expect(told(file)).toMatch(/summarizes each row by itself/)
  const loader = (parameters: object): Part => ({
    ...{ name: 'Loader', type: 'documentDefaultDataLoader', kind: 'ai_document', parameters },
  })
  const mode = { operationMode: 'documentLoader' }
  const data = loader({ jsonMode: 'expressionData', jsonData: '={{ $json.body }}' })
  expect(of(mode, [data]).ask.config.input).toBe('={{ $json.body }}')
  const pdf = loader({ dataType: 'binary', loader: 'pdfLoader' })
  expect(of({ type: 'refine' }, [pdf], 1).ask.config).toMatchObject({ format: 'pdf' })
  const epub = loader({ dataType: 'binary', loader: 'epubLoader' })
  expect(told(of(mode, [epub]))).toMatch(/files of the kind \\"epubLoader/)
  expect(told(of(mode))).toMatch(/no loader of documents/)
})
