import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { fileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { keepText, listObjects } from '../texts.ts'
import { answer, ask, type Fields, objectOf, readModel, readPrompt } from './asking.ts'
import { reportMemory } from './memory.ts'
import { readParser, writeListCode } from './parsers.ts'

/** n8n's Basic LLM Chain: an LLM. */
export function mapChain(node: SourceNode, tools: MapperTools): MappedNode {
  const { asked, temperature, maxTokens, fallbacks } = readModel(tools, node)
  const said = readMessages(node, tools)
  if (Number(Object(node.parameters.batching).delayBetweenBatches) > 0)
    reportMissingOption(tools.report, 'parameters.batching', node.parameters.batching)
  const parser = readParser(tools)
  reportMemory(tools)
  const asking = {
    ...{ ...asked, ...temperature, ...maxTokens, ...fallbacks },
    prompt: readPrompt(node),
    ...said,
  }
  if (!parser) return answer('LLM', asking, 'text', tools)
  if ('list' in parser) {
    const { instructions, separator, items } = parser.list
    const mapped = ask('LLM', { ...asking, prompt: addText(asking.prompt, `\n${instructions}`) })
    const code = writeListCode({ separator, items })
    const config = { language: 'javascript', mode: 'all', code, style: 'code' }
    return { ...mapped, shaper: { type: 'CODE', config, allItems: true } }
  }
  const { schema } = parser
  // The oldest parser's answer is the item itself.
  const into =
    parser.node.version > 1 || schema.type === 'array' ? { into: { field: 'output', keep: false } } : {}
  return ask('LLM', { ...asking, output: 'json', schema, ...into })
}

/** A template with a text behind it, in which there is no expression. */
function addText(template: string, text: string): string {
  return template.startsWith('=') ? template + text : keepText(`${template}${text}`)
}

/** The messages that come before the prompt; files of the last one are shown with the prompt, as in n8n. */
function readMessages({ parameters }: SourceNode, tools: MapperTools): Fields {
  const values = listObjects(objectOf(parameters.messages).messageValues)
  const all = values.map((value) => readMessage(value, tools))
  const [first, ...others] = all
  const system = first?.role === 'system' ? { system: first.content } : {}
  const rest = first?.role === 'system' ? others : all
  if (rest.some(({ role }) => role === 'system')) {
    const message =
      'n8n tells the model each message of the system at its place. Perdure tells it all of them at first.'
    tools.report('parameter', 'parameters.messages', message, parameters.messages)
  }
  const last = rest.at(-1)
  const shown = last?.files === undefined ? {} : { files: last.files }
  const messages = last?.files === undefined ? rest : rest.slice(0, -1)
  return { ...system, ...(messages.length > 0 ? { messages } : {}), ...shown }
}

const ROLES: Record<string, string> = {
  SystemMessagePromptTemplate: 'system',
  AIMessagePromptTemplate: 'assistant',
  HumanMessagePromptTemplate: 'user',
}

function readMessage(
  { type = 'SystemMessagePromptTemplate', messageType = 'text', message, ...image }: Fields,
  { report }: MapperTools,
): Fields {
  const role = ROLES[String(type)]
  if (role === undefined) throw new Error(`it has a message of the type "${String(type)}"`)
  if (role !== 'user' || messageType === 'text') return { role, content: keepText(message) }
  const { imageDetail, imageUrl, binaryImageDataKey } = image
  if (imageDetail !== undefined && imageDetail !== 'auto')
    reportMissingOption(report, 'parameters.messages.imageDetail', imageDetail)
  return { role, files: [messageType === 'imageUrl' ? keepText(imageUrl) : fileOf(binaryImageDataKey)] }
}
