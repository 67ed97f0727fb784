import { loadChatMemory } from '../../chat/memory.ts'
import { askModel } from '../../models/ask.ts'
import { recall, remember, renderMemoryKey } from '../../models/memory.ts'
import type { ModelMessage } from '../../models/model.ts'
import type { NodeRunner } from '../kit/node.ts'
import {
  askForAnswer,
  askForText,
  placeOutput,
  renderFallbacks,
  renderHow,
  renderMore,
  renderSchema,
} from './ask.ts'
import { renderConversation } from './conversation.ts'

/** Any object, for JSON without a schema. */
const ANY_OBJECT = { type: 'object' }

/**
 * LLM: asks a model, and outputs {text}, or with the output `json` the object or the list that it gives, held against
 * the schema. Fails as renderConversation, askForText and askForAnswer do.
 */
export const runLlm: NodeRunner = async (context) => {
  const { output, schema } = context.config
  const how = await renderHow(context)
  const system = await renderMore(context, 'system')
  const said = await renderConversation(context)
  const { credentialId } = context.config
  const fallbacks = await renderFallbacks(context)
  const memory = await loadChatMemory(context, (quiet, request) =>
    askModel(quiet, { credentialId, model: how.model, request }),
  )
  const key = await renderMemoryKey(context)
  const before = key === undefined ? [] : await recall(context, key)
  const messages: ModelMessage[] = [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    ...(memory ?? before),
    ...said,
  ]
  const keep = async (answered: string) => {
    const asked = said.at(-1)
    if (key !== undefined && asked?.role === 'user')
      await remember(context, key, { asked: asked.content, answered })
  }
  if (output !== 'json') {
    const { text } = await askForText(context, { ...how, fallbacks, messages })
    await keep(text)
    return { output: placeOutput(context, context.config.into === undefined ? { text } : text) }
  }
  const wanted = schema === undefined ? ANY_OBJECT : await renderSchema(context)
  const answer = await askForAnswer(context, { ...how, fallbacks, messages }, wanted)
  await keep(JSON.stringify(answer))
  return { output: placeOutput(context, answer) }
}
