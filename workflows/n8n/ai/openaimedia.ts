import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { fileOf } from '../nodes/fileparts.ts'
import { mapHttpRequest } from '../nodes/http.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, keepTexts, plainText } from '../texts.ts'
import { ask, type Fields, findCredential, objectOf, readModelName, shapeEach } from './asking.ts'

const API = 'https://api.openai.com/v1'

/** What OpenAI's node does with sound, images and files. */
export const MEDIA_DOINGS: Record<string, (node: SourceNode, tools: MapperTools, key: string) => MappedNode> =
  {
    'openAi audio transcribe': (node, tools) => mapSound(node, tools, 'transcribe'),
    'openAi audio translate': (node, tools) => mapSound(node, tools, 'translate'),
    'openAi audio generate': mapSpeech,
    'openAi image generate': mapImage,
    'openAi text classify': mapModeration,
    'openAi file upload': mapUpload,
    'openAi file list': mapList,
    'openAi file deleteFile': mapDeletion,
    'old openAi image create': mapImage,
    'old openAi text moderate': mapModeration,
  }

/** The model that n8n always has for what is said in a file. */
const LISTENER = 'whisper-1'

function mapSound(node: SourceNode, tools: MapperTools, operation: string): MappedNode {
  const { binaryPropertyName, options } = node.parameters
  const said = Object.entries(objectOf(options)).filter(([, value]) => value)
  const kept = Object.fromEntries(said)
  return ask('AI_MEDIA', {
    ...{ credentialId: findCredential(node, tools), model: LISTENER, operation },
    file: fileOf(binaryPropertyName),
    ...(said.length > 0 ? { options: keepTexts(kept) } : {}),
  })
}

/** Says what of n8n's item is not there: it has the type, the name and the size of the file beside it. */
function reportFile({ report }: MapperTools, options: unknown): void {
  const message =
    "The item has the file in n8n's place, and nothing beside it: n8n repeats its name, its type and its size in the item."
  report('parameter', 'parameters.options.binaryPropertyOutput', message, options ?? null)
}

function nameOutput(given: unknown): string {
  const name = plainText(given || 'data')
  if (name === undefined) throw new Error('an expression gives the name of the file that it makes')
  return name
}

function mapSpeech(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters } = node
  const { input, voice = 'alloy', options } = parameters
  const { binaryPropertyOutput, response_format: format, ...rest } = objectOf(options)
  reportFile(tools, options)
  const mapped = ask('AI_MEDIA', {
    credentialId: findCredential(node, tools),
    model: readModelName(parameters, { key, node, report: tools.report }),
    ...{ operation: 'speak', text: keepText(input), voice: keepText(voice) },
    options: { response_format: keepText(format || 'mp3'), speed: 1, ...(keepTexts(rest) as Fields) },
  })
  const name = JSON.stringify(nameOutput(binaryPropertyOutput))
  return { ...mapped, shaper: shapeEach(`{"$binary": {${name}: {"file": $item.file}}}`) }
}

/** Options that n8n shows under other names than its vendor has them. */
const RENAMED: Record<string, string> = { dalleQuality: 'quality' }

function mapImage(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { parameters } = node
  const { prompt, responseFormat, options } = parameters
  const { n = 1, returnImageUrls, binaryPropertyOutput, ...rest } = objectOf(options)
  if (Number(n) !== 1)
    throw new Error('it makes several images at once: make them with an AI_MEDIA, one for each')
  const model = readModelName(parameters, { key, node, report: tools.report })
  if (isTemplate(model)) throw new Error('an expression gives its model')
  const byUrl = returnImageUrls === true || responseFormat === 'imageUrl'
  // Newer models always answer with the image itself.
  const format = /^dall-e/.test(model) ? { response_format: byUrl ? 'url' : 'b64_json' } : {}
  const named = Object.entries(rest).map(([name, value]) => [RENAMED[name] ?? name, keepTexts(value)])
  const own = { ...Object.fromEntries(named), ...format }
  const mapped = ask('AI_MEDIA', {
    ...{ credentialId: findCredential(node, tools), model, operation: 'image', text: keepText(prompt) },
    ...(Object.keys(own).length > 0 ? { options: own } : {}),
  })
  if (byUrl) return { ...mapped, shaper: shapeEach('{"url": $item.files[0].url}') }
  reportFile(tools, options)
  const name = JSON.stringify(nameOutput(binaryPropertyOutput))
  return { ...mapped, shaper: shapeEach(`{"$binary": {${name}: {"file": $item.files[0].file}}}`) }
}

/** A request to the vendor, signed in with n8n's credential: it costs nothing, and may be made again. */
function sendTo(node: SourceNode, tools: MapperTools, parameters: Fields): MappedNode {
  const signed = { authentication: 'predefinedCredentialType', nodeCredentialType: 'openAiApi' }
  return mapHttpRequest({ ...node, version: 4.2, parameters: { ...parameters, ...signed } }, tools)
}

function mapModeration(node: SourceNode, tools: MapperTools, key: string): MappedNode {
  const { input, simplify = true, options, model } = node.parameters
  const isOld = key.startsWith('old ')
  const isStable = objectOf(options).useStableModel === true
  const named = isOld
    ? (model ?? 'text-moderation-latest')
    : `text-moderation-${isStable ? 'stable' : 'latest'}`
  const mapped = sendTo(node, tools, {
    ...{ method: 'POST', url: `${API}/moderations`, sendBody: true },
    bodyParameters: {
      parameters: [
        { name: 'input', value: input ?? '' },
        { name: 'model', value: named },
      ],
    },
  })
  const shape = !isOld && simplify !== false ? '{"flagged": $item.results[0].flagged}' : '$item.results[0]'
  return { ...mapped, shaper: shapeEach(shape) }
}

function mapUpload(node: SourceNode, tools: MapperTools): MappedNode {
  const { binaryPropertyName = 'data', options } = node.parameters
  const file = { parameterType: 'formBinaryData', name: 'file', inputDataFieldName: binaryPropertyName }
  return sendTo(node, tools, {
    ...{ method: 'POST', url: `${API}/files`, sendBody: true, contentType: 'multipart-form-data' },
    bodyParameters: {
      parameters: [{ name: 'purpose', value: objectOf(options).purpose || 'assistants' }, file],
    },
  })
}

function mapList(node: SourceNode, tools: MapperTools): MappedNode {
  const { purpose } = objectOf(node.parameters.options)
  const chosen = purpose && purpose !== 'any'
  const mapped = sendTo(node, tools, {
    ...{ method: 'GET', url: `${API}/files` },
    ...(chosen
      ? { sendQuery: true, queryParameters: { parameters: [{ name: 'purpose', value: purpose }] } }
      : {}),
  })
  const code =
    'return $input.all().flatMap((item) => item.json.error !== undefined ? [item] : (item.json.data ?? []).map((json) => ({ json })))'
  const config = { language: 'javascript', mode: 'all', code, style: 'code' }
  return { ...mapped, shaper: { type: 'CODE', config, allItems: true } }
}

function mapDeletion(node: SourceNode, tools: MapperTools): MappedNode {
  const { fileId } = node.parameters
  const given = typeof fileId === 'object' ? objectOf(fileId).value : fileId
  const id = isTemplate(given) ? given.slice(1) : encodeURIComponent(plainText(given) ?? '')
  if (id === '') throw new Error('it names no file to be deleted')
  const url = `${isTemplate(given) ? '=' : ''}${API}/files/${id}`
  return sendTo(node, tools, { method: 'DELETE', url })
}
