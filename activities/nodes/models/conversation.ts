import * as v from 'valibot'
import { MAX_ASKED_FILES, messagesField } from '../../../workflows/nodes/conversation.ts'
import { readFileValue } from '../../files/files.ts'
import type { ModelFile, ModelMessage } from '../../models/model.ts'
import { invalidConfig, NodeFailure } from '../kit/failure.ts'
import { demandFiles } from '../kit/files.ts'
import type { NodeContext } from '../kit/node.ts'
import { renderAsked, renderMore } from './ask.ts'

/** The bytes that the files of one request may have together: as text they take a third more, and others come with them. */
const MAX_SHOWN_BYTES = 5 * 1024 * 1024

/** What they take while they are sent: as bytes, as a text, and in the request. */
export const HELD_FOR_SHOWN = 5 * MAX_SHOWN_BYTES

/** Whether a node's config shows files to its model. */
export const showsFiles = ({ files, messages }: Record<string, unknown>): boolean =>
  files !== undefined || (Array.isArray(messages) && messages.some((one) => Object(one).files !== undefined))

const SHOWABLE = /^(?:image\/[\w.+-]+|application\/pdf)$/

/**
 * What a node says to its model: the messages of its config, then its prompt with the files that are shown with it.
 * Throws a NodeFailure: InvalidConfig for a wrong message or file, FileMissing, InputTooLarge.
 */
export async function renderConversation(context: NodeContext): Promise<ModelMessage[]> {
  const { config, evaluator, bindings } = context
  const room = { left: MAX_SHOWN_BYTES }
  const given = await evaluator.render(config.messages ?? [], bindings)
  const parsed = v.safeParse(messagesField, dropEmpty(given))
  if (!parsed.success) throw invalidConfig('messages', parsed.issues[0].message)
  const said: ModelMessage[] = []
  for (const [at, { role, content = '', files }] of parsed.output.entries()) {
    const shown = files === undefined ? [] : await openShown(context, files, `messages[${at}].files`, room)
    if (role !== 'user') said.push({ role, content })
    else if (content !== '' || shown.length > 0) said.push(withFiles(content, shown))
  }
  if (config.prompt === undefined) {
    if (said.every(({ role }) => role === 'system'))
      throw invalidConfig('messages', 'must have one that is not of the system, for there is no prompt')
    return said
  }
  const files =
    config.files === undefined
      ? []
      : await openShown(context, await evaluator.render(config.files, bindings), 'files', room)
  // With an image there may be nothing to say.
  const prompt =
    files.length > 0 ? ((await renderMore(context, 'prompt')) ?? '') : await renderAsked(context, 'prompt')
  return [...said, withFiles(prompt, files)]
}

const withFiles = (content: string, files: ModelFile[]): ModelMessage =>
  files.length > 0 ? { role: 'user', content, files } : { role: 'user', content }

/** Messages whose expressions give nothing are not said; their values become texts. */
function dropEmpty(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages
  return messages.flatMap((message) => {
    const { content, files } = Object(message)
    const text = content === null || content === undefined ? '' : content
    const said = typeof text === 'string' ? text : JSON.stringify(text)
    return said === '' && files === undefined ? [] : [{ ...message, content: said }]
  })
}

async function openShown(
  context: NodeContext,
  given: unknown,
  key: string,
  room: { left: number },
): Promise<ModelFile[]> {
  // An expression may give one file, or a list in a list.
  const list = Array.isArray(given) ? given.flat() : [given]
  if (list.length > MAX_ASKED_FILES) throw invalidConfig(key, `must have at most ${MAX_ASKED_FILES} entries`)
  const shown: ModelFile[] = []
  for (const [at, one] of list.entries()) shown.push(await openOne(context, one, `${key}[${at}]`, room))
  return shown
}

async function openOne(
  context: NodeContext,
  given: unknown,
  key: string,
  room: { left: number },
): Promise<ModelFile> {
  if (typeof given === 'string') {
    if (URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)) return { url: given }
    throw invalidConfig(key, 'must be a file, or the address of one')
  }
  const value = readFileValue(given)
  if (!value) throw invalidConfig(key, 'must be a file: {file: {id, name, mimeType, bytes}}, or its address')
  const file = await demandFiles(context).open(value)
  const type = file.mimeType.split(';')[0]!.trim().toLowerCase()
  if (!SHOWABLE.test(type))
    throw invalidConfig(key, `is of the type ${type}: models are shown images and PDF files`)
  if (file.bytes > room.left)
    throw new NodeFailure(
      `The files for the model have more than ${MAX_SHOWN_BYTES} bytes together: show it fewer, or smaller ones`,
      { type: 'InputTooLarge' },
    )
  room.left -= file.bytes
  const bytes = await file.read(file.bytes)
  return { mimeType: type, name: file.name, data: Buffer.from(bytes).toString('base64') }
}
