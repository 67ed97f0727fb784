import { isObject } from '../../../workflows/json.ts'
import { anyObject } from '../../../workflows/nodes/fields.ts'
import { imageCountField, type MediaOperation, SET_FIELDS } from '../../../workflows/nodes/media.ts'
import { readFileValue } from '../../files/files.ts'
import { findExtension, sniffOrGuess } from '../../files/types.ts'
import { askMedia, type MediaAnswer, type MediaRequest } from '../../models/media.ts'
import { sendOnce } from '../../send/once.ts'
import { renderKey, renderText } from '../kit/config.ts'
import { invalidConfig } from '../kit/failure.ts'
import { buildMultipart } from '../kit/fileparts.ts'
import { demandFiles, openGiven } from '../kit/files.ts'
import type { NodeContext, NodeRunner } from '../kit/node.ts'
import { placeOutput, renderAsked } from './ask.ts'

/** The most bytes of an answer by the operation: sound, or images in base64. */
const MOST_BYTES: Record<MediaOperation, number> = {
  transcribe: 2 * 1024 * 1024,
  translate: 2 * 1024 * 1024,
  speak: 12 * 1024 * 1024,
  image: 24 * 1024 * 1024,
}

/** The sound that one request may have, as its vendor takes it. */
const MOST_SOUND = 25 * 1024 * 1024

const readOperation = (config: Record<string, unknown>) => config.operation as MediaOperation

/** The bytes that an answer takes: as it comes, as values, and in its note. */
export const findMediaBytes = (config: Record<string, unknown>): number =>
  3 * (MOST_BYTES[readOperation(config)] ?? MOST_BYTES.image)

/**
 * AI_MEDIA: has a vendor's model write down what is said, speak, or make images. Outputs {text}, {file} or {files}. The
 * request is made at most once: its answer is stored, and later attempts make their files of that. Fails as askMedia
 * and sendOnce do (OutcomeUnknown), and with InvalidConfig and FileMissing.
 */
export const runMedia: NodeRunner = async (context) => {
  const operation = readOperation(context.config)
  const once = {
    what: 'The request to the model',
    uncertain: 'OutcomeUnknown',
    repeat: false,
    way: 'Look at the account there, and execute the node again if it is worth a second payment',
  } as const
  const answer = (await sendOnce(context, once, async (handover) => {
    const request = await buildRequest(context, operation)
    const { credentialId } = context.config
    return askMedia(context, { credentialId, model: await renderText(context, 'model'), request }, handover)
  })) as MediaAnswer
  if (answer.text !== undefined) return { output: place(context, 'text', answer.text) }
  const files = demandFiles(context)
  const stored: unknown[] = []
  for (const [at, { data, mimeType }] of (answer.media ?? []).entries()) {
    const bytes = Buffer.from(data, 'base64')
    const type = mimeType ?? sniffOrGuess('', bytes)
    const stem = operation === 'speak' ? 'audio' : `image${answer.media!.length > 1 ? at + 1 : ''}`
    stored.push(await files.store({ name: `${stem}.${findExtension(type) ?? 'bin'}`, mimeType: type }, bytes))
  }
  if (operation === 'speak') return { output: place(context, 'file', (stored[0] as { file: unknown }).file) }
  const { urls = [] } = answer
  return { output: place(context, 'files', stored.length > 0 ? stored : urls.map((url) => ({ url }))) }
}

/** A file is output as its value is everywhere: {file: {id, name, mimeType, bytes}}. */
function place(context: NodeContext, key: 'text' | 'file' | 'files', value: unknown): unknown {
  if (context.config.into === undefined) return { [key]: value }
  return placeOutput(context, key === 'file' ? { file: value } : value)
}

async function buildRequest(context: NodeContext, operation: MediaOperation): Promise<MediaRequest> {
  const { config } = context
  const given = config.options === undefined ? {} : await renderKey(context, 'options', anyObject)
  for (const key of SET_FIELDS)
    if (Object.hasOwn(given, key)) throw invalidConfig(`options.${key}`, 'is set by the node itself')
  const options = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== null && value !== ''),
  )
  const maxBytes = MOST_BYTES[operation]
  const model = await renderText(context, 'model')
  switch (operation) {
    case 'transcribe':
    case 'translate': {
      const file = await openGiven(context, 'file')
      if (file.bytes > MOST_SOUND)
        throw invalidConfig('file', `has ${file.bytes} bytes; a vendor takes at most ${MOST_SOUND}`)
      const sound = { file: { id: file.id, name: file.name, mimeType: file.mimeType, bytes: file.bytes } }
      const body = await buildMultipart(context.files, [
        ['model', model],
        ...listPairs(options),
        ['file', sound],
      ])
      const path = operation === 'transcribe' ? 'audio/transcriptions' : 'audio/translations'
      return { path, body: body.stream, type: body.type, answers: 'text', maxBytes }
    }
    case 'speak': {
      const input = await renderAsked(context, 'text')
      const voice = config.voice === undefined ? 'alloy' : await renderText(context, 'voice')
      return {
        ...writeJson('audio/speech', { model, input, voice, ...options }),
        ...{ answers: 'sound', maxBytes, characters: [...input].length },
      }
    }
    case 'image': {
      const prompt = await renderAsked(context, 'text')
      const n = config.count === undefined ? 1 : await renderKey(context, 'count', imageCountField)
      const images = await listImages(context)
      if (images.length === 0)
        return {
          ...writeJson('images/generations', { model, prompt, n, ...options }),
          answers: 'images',
          maxBytes,
        }
      const name = images.length > 1 ? 'image[]' : 'image'
      const body = await buildMultipart(context.files, [
        ...([
          ['model', model],
          ['prompt', prompt],
          ['n', String(n)],
        ] as [string, string][]),
        ...listPairs(options),
        ...images.map((image): [string, typeof image] => [name, image]),
      ])
      return { path: 'images/edits', body: body.stream, type: body.type, answers: 'images', maxBytes }
    }
  }
}

const writeJson = (path: string, body: object) => ({
  ...{ path, body: JSON.stringify(body), type: 'application/json' },
})

const listPairs = (options: Record<string, unknown>): [string, string][] =>
  Object.entries(options).map(([key, value]) => [
    key,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  ])

async function listImages({ config, evaluator, bindings }: NodeContext) {
  if (config.files === undefined) return []
  const given = await evaluator.render(config.files, bindings)
  const list = Array.isArray(given) ? given.flat() : isObject(given) ? [given] : []
  if (list.length === 0 && !Array.isArray(given)) throw invalidConfig('files', 'must be a list of files')
  return list.map((one, at) => {
    const file = readFileValue(one)
    if (!file) throw invalidConfig(`files[${at}]`, 'must be a file: {file: {id, name, mimeType, bytes}}')
    return file
  })
}
