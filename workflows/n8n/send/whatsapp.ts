import { getOwn } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { sentFileOf } from '../nodes/fileparts.ts'
import type { MappedNode } from '../parts.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, writeCode, writeLiteral } from '../texts.ts'
import { keepFields, type MappedMessage, mapMessage, readOptionFields, refuseOperation } from './messenger.ts'

/** The node of WhatsApp's Cloud API. */
export function mapWhatsApp(node: SourceNode, tools: MapperTools): MappedNode {
  const { resource = 'message', operation } = node.parameters
  const usual = { message: 'send', media: 'mediaUpload' }
  const name = String(operation ?? getOwn<string>(usual, String(resource)))
  return mapMessage(node, tools, 'whatsAppApi', readOperation(node, String(resource), name))
}

function readOperation(node: SourceNode, resource: string, operation: string): MappedMessage {
  const { parameters } = node
  switch (`${resource}.${operation}`) {
    case 'message.send':
      return { config: { ...readPlace(node), ...readContent(node) } }
    case 'message.sendTemplate':
      return { config: { ...readPlace(node), options: { type: 'template', template: readTemplate(node) } } }
    case 'media.mediaUrlGet':
      return { config: { operation: 'call', method: methodOf('GET', parameters.mediaGetId) } }
    case 'media.mediaDelete':
      return { config: { operation: 'call', method: methodOf('DELETE', parameters.mediaDeleteId) } }
    case 'media.mediaUpload': {
      const { mediaFileName } = readOptionFields(node, 'additionalFields')
      return {
        config: {
          operation: 'call',
          method: methodOf('POST', parameters.phoneNumberId, '/media'),
          body: { messaging_product: 'whatsapp' },
          files: { file: sentFileOf(parameters.mediaPropertyName, mediaFileName) },
        },
      }
    }
  }
  return refuseOperation(resource, operation)
}

function methodOf(verb: string, id: unknown, after = ''): string {
  const text = keepText(id)
  return isTemplate(text) ? `=${verb} ${text.slice(1)}${after}` : `${verb} ${text}${after}`
}

/** The sender, and the number that it goes to, which n8n writes without signs. */
function readPlace({ parameters }: SourceNode): Fields {
  const { phoneNumberId, recipientPhoneNumber: to } = parameters
  return {
    from: keepText(phoneNumberId),
    to: isTemplate(to)
      ? `={{ String(${writeCode(to)}).replace(/[()+-]/g, '') }}`
      : writeLiteral((plainText(to) ?? '').replace(/[()+-]/g, '')),
  }
}

const MEDIA = ['image', 'video', 'audio', 'document']

function readContent(node: SourceNode): Fields {
  const { parameters } = node
  const { messageType: type = 'text', textBody, mediaPath = 'useMediaLink', mediaLink, mediaId } = parameters
  const { previewUrl, mediaCaption, mediaFilename, nameAddress } = readOptionFields(node, 'additionalFields')
  if (type === 'text')
    return {
      text: keepText(textBody),
      ...(previewUrl === undefined ? {} : { options: { preview_url: keepTexts(previewUrl) } }),
    }
  if (type === 'location' && nameAddress === undefined) {
    const { longitude, latitude } = parameters
    return { options: { type, location: keepFields({ longitude, latitude }) } }
  }
  if (!MEDIA.includes(String(type)))
    throw new Error(`it sends "${type}": write it into the \`options\` of a CHAT_MESSAGE`)
  if (mediaPath !== 'useMediaLink' && mediaPath !== 'useMediaId')
    return {
      files: sentFileOf(parameters.mediaPropertyName),
      options: { type, [String(type)]: keepFields({ caption: mediaCaption || undefined }) },
    }
  const source = mediaPath === 'useMediaLink' ? { link: mediaLink ?? '' } : { id: mediaId ?? '' }
  const filename = mediaFilename ?? parameters.mediaFilename
  return { options: { type, [String(type)]: keepFields({ ...source, filename, caption: mediaCaption }) } }
}

function readTemplate({ parameters }: SourceNode): Fields {
  const { template, components } = parameters
  if (isTemplate(template)) throw new Error('an expression gives the name of its template')
  const [name = '', code = ''] = (plainText(template) ?? '').split('|')
  const { component } = objectOf(components)
  return {
    name: writeLiteral(name),
    language: { code: writeLiteral(code) },
    ...(component === undefined ? {} : { components: listObjects(component).map(readComponent) }),
  }
}

function readComponent({ type, bodyParameters, headerParameters, ...rest }: Fields): Fields {
  const parametersOf = (given: unknown) => listObjects(objectOf(given).parameter)
  if (type === 'body') {
    const parameters = parametersOf(bodyParameters)
    if (parameters.some((one) => (one.type ?? 'text') !== 'text'))
      throw new Error('its template has a currency or a date: write it into the `options` of a CHAT_MESSAGE')
    return { type, parameters: parameters.map(keepFields) }
  }
  if (type === 'header') {
    const parameters = parametersOf(headerParameters).map((one) =>
      one.type === 'image' ? { type: 'image', image: { link: keepTexts(one.imageLink) } } : keepFields(one),
    )
    return { type, parameters }
  }
  if (type !== 'button') throw new Error(`its template has a part of the kind "${type}"`)
  const { index = 0, sub_type, buttonParameters } = rest
  const { parameter } = objectOf(buttonParameters)
  return { type, ...keepFields({ index: String(index), sub_type, parameters: [parameter] }) }
}
