import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { isTemplate, keepText } from '../texts.ts'
import type { Fields } from './asking.ts'

const MAX_MESSAGES = 200
/** n8n counts questions with their answers. */
const WINDOW = 5
const LONG = 3_650

/** The versions from which a session of the chat's is that of one memory node only. */
const SCOPED: Record<string, number> = {
  memoryBufferWindow: 1.4,
  memoryPostgresChat: 1.4,
  memoryRedisChat: 1.6,
  memoryMongoDbChat: 1.1,
  memoryMotorhead: 1.4,
  memoryXata: 1.5,
  memoryZep: 1.4,
}

/** The versions from which memories have a window; before, they have all that was said. */
const WINDOWED: Record<string, number> = {
  memoryBufferWindow: 1,
  memoryPostgresChat: 1.1,
  memoryRedisChat: 1.3,
}

/**
 * The memory of a node that asks a model. The one that replies in a chat has the memory of the chat, which is reported
 * where it differs from n8n's.
 */
export function mapMemory(tools: MapperTools): Fields {
  const [memory, ...others] = tools.attached('ai_memory')
  if (tools.repliesInChat && (!memory || isOfSession(memory))) {
    reportChat(tools, memory)
    return {}
  }
  if (!memory) return {}
  if (others.length > 0) throw new Error('several memories are attached to it')
  const { parameters, type, version } = memory
  if (tools.repliesInChat) {
    const told =
      'In Perdure the node that replies in a chat remembers that chat, and has no memory with a key besides. The memory ' +
      'was left out.'
    tools.reportOf(memory)('connection', 'ai_memory', told, parameters)
    return {}
  }
  const key = readKey(memory)
  const name = nameMemory(memory)
  const messages = readWindow(memory)
  const days = readDays(memory)
  const message =
    'n8n keeps what was said in a memory of its own, which does not come along. Perdure keeps it anew, sealed in its own ' +
    `database: the model is told the newest ${messages} messages, and each is kept for ${days === 1 ? 'a day' : `${days} days`}, at most ${MAX_MESSAGES}. ` +
    'Calls of tools are not kept. Items that are worked on at once are told what was said before all of them.' +
    (type === 'memoryBufferWindow' ? ' n8n forgets a memory that was not used for an hour.' : '')
  tools.reportOf(memory)('parameter', 'parameters', message, { version, ...parameters })
  return { memory: { key, messages, days, name } }
}

/** Says that a node remembers nothing here, or, in a chat, what was said there. */
export function reportMemory(tools: MapperTools): void {
  for (const memory of tools.attached('ai_memory'))
    tools.reportOf(memory)(
      'connection',
      'ai_memory',
      "n8n's node has no memory, so this one was left out.",
      memory.parameters,
    )
  if (tools.repliesInChat) reportChat(tools, undefined)
}

const isOfSession = ({ parameters, version }: SourceNode) =>
  version >= 1.2
    ? (parameters.sessionIdType ?? 'fromInput') === 'fromInput'
    : /^=\{\{\s*\$json\.sessionId\s*\}\}$/.test(String(parameters.sessionKey ?? '={{ $json.sessionId }}'))

function readKey({ name, parameters, version, type }: SourceNode): string {
  const { sessionIdType = 'fromInput', sessionKey, sessionId } = parameters
  const isOld = version < (type === 'memoryBufferWindow' ? 1.2 : 1.1)
  const standard = version === 1 && type === 'memoryBufferWindow' ? 'chat_history' : SESSION
  const given = isOld
    ? (sessionKey ?? sessionId ?? standard)
    : sessionIdType === 'customKey'
      ? sessionKey
      : SESSION
  const key = keepText(given)
  if (key === '') throw new Error(`its memory "${name}" has no key`)
  return key
}

const SESSION = '={{ $json.sessionId }}'

/** n8n's memories of one kind share what was said under one key, but for newer ones that belong to one session. */
function nameMemory({ name, type, version, parameters }: SourceNode): string {
  const scoped = SCOPED[type]
  const ofSession = (parameters.sessionIdType ?? 'fromInput') === 'fromInput'
  if (scoped !== undefined && version >= scoped && ofSession) return name.slice(0, 100)
  const table = parameters.tableName ?? parameters.collectionName
  const where = table === undefined || isTemplate(table) ? '' : ` ${String(table)}`
  return `${type}${where}`.slice(0, 100)
}

function readWindow({ name, type, version, parameters }: SourceNode): number {
  const { contextWindowLength = WINDOW } = parameters
  if (version < (WINDOWED[type] ?? 1)) return MAX_MESSAGES
  if (isTemplate(contextWindowLength))
    throw new Error(`an expression says how many messages its memory "${name}" has`)
  const pairs = Number(contextWindowLength)
  return Math.max(2, Math.min(MAX_MESSAGES, 2 * (Number.isFinite(pairs) ? Math.floor(pairs) : WINDOW)))
}

const DAY_SECONDS = 86_400

function readDays({ type, parameters }: SourceNode): number {
  if (type === 'memoryBufferWindow') return 1
  const seconds = Number(parameters.sessionTTL)
  return seconds > 0 ? Math.min(LONG, Math.ceil(seconds / DAY_SECONDS)) : LONG
}

function reportChat(tools: MapperTools, memory: SourceNode | undefined): void {
  if (memory) {
    const message =
      'n8n keeps a number of messages in this memory. Perdure keeps the whole chat, tells the model as much of it as ' +
      "the workflow's setting chatHistoryTokens lets through, and summarizes what is older."
    tools.reportOf(memory)('parameter', 'parameters', message, memory.parameters)
    return
  }
  const message =
    "n8n's node has no memory. In Perdure the node that replies in a chat is told what was said in it before."
  tools.report('parameter', 'ai_memory', message, null)
}
