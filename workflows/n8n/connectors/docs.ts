import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import { readOptionFields } from '../send/messenger.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, writeCode, writeLiteral } from '../texts.ts'
import {
  demandOperation,
  readGoogleSignIn,
  type ServiceReader,
  type ServiceWork,
  type WorkReader,
} from './action.ts'

/** Google's documents. */
export const readGoogleDocs: ServiceReader = (node, tools) => {
  const { resource = 'document', operation = 'create', authentication } = node.parameters
  const read = demandOperation(OPERATIONS, 'Google Docs', { resource, operation })
  const isService = authentication === undefined && node.version < 2
  const credential = isService ? 'googleApi' : readGoogleSignIn(node, 'googleDocsOAuth2Api')
  return { connector: 'google-docs', credential, ...read(node, tools) }
}

const OPERATIONS: Record<string, WorkReader> = {
  'document.create': create,
  'document.get': (node) =>
    isSimple(node)
      ? { action: 'readText', input: { ...documentOf(node), tables: false } }
      : { action: 'getDocument', input: documentOf(node) },
  'document.update': update,
}

function isSimple({ parameters }: SourceNode): boolean {
  const { simple = true } = parameters
  if (isTemplate(simple)) throw new Error('an expression says what it puts out')
  return simple !== false
}

/** The id of the document, which may stand in its address. */
function documentOf({ parameters }: SourceNode): Fields {
  const given = parameters.documentURL
  if (isTemplate(given)) {
    const find = '/https:\\/\\/docs\\.google\\.com\\/document\\/d\\/([a-zA-Z0-9_-]+)\\//'
    return {
      document: `={{ (text => (${find}.exec(text) || ['', text])[1])(String(${writeCode(given)} ?? '')) }}`,
    }
  }
  const text = plainText(given) ?? ''
  const [, id = text] = /https:\/\/docs\.google\.com\/document\/d\/([a-zA-Z0-9_-]+)\//.exec(text) ?? []
  return { document: writeLiteral(id) }
}

/** Drive makes it, in a folder that is named. */
function create({ parameters }: SourceNode): ServiceWork {
  const { title, folderId } = parameters
  const isNamed = folderId !== undefined && folderId !== '' && folderId !== 'default'
  const folder = isTemplate(folderId)
    ? `={{ (folder => folder && folder !== 'default' ? folder : 'root')(${writeCode(folderId)}) }}`
    : keepText(folderId)
  return {
    connector: 'google-drive',
    action: 'createDocument',
    input: {
      name: keepText(title ?? ''),
      ...(isNamed ? { folder } : {}),
      fields: 'kind,id,name,mimeType',
    },
  }
}

const SIMPLE = '$merge([{}, $item.replies[0].*[0], {"documentId": $item.documentId}])'

function update(node: SourceNode): ServiceWork {
  const { actionsUi } = node.parameters
  if (isTemplate(actionsUi)) throw new Error('an expression gives all of its changes')
  const requests = listObjects(objectOf(actionsUi).actionFields).map(readChange)
  const { control = 'requiredRevisionId', value } = objectOf(
    readOptionFields(node, 'updateFields').writeControlObject,
  )
  if (isTemplate(control)) throw new Error('an expression says which revision it changes')
  return {
    action: 'updateDocument',
    input: {
      ...documentOf(node),
      requests,
      ...(value === undefined ? {} : { writeControl: { [String(control)]: keepText(value) } }),
    },
    ...(isSimple(node) ? { shape: SIMPLE } : {}),
  }
}

function readChange(given: Fields): Fields {
  const { object = 'text', action = 'insert', text, replaceText, matchCase = false } = given
  if ([object, action].some(isTemplate)) throw new Error('an expression says what it changes')
  if (object === 'text' && action === 'replaceAll')
    return {
      replaceAllText: {
        replaceText: keepText(replaceText ?? ''),
        containsText: { text: keepText(text ?? ''), matchCase: keepTexts(matchCase) },
      },
    }
  if (object === 'text' && action === 'insert')
    return { insertText: { text: keepText(text ?? ''), ...readLocation(given) } }
  if (object === 'pageBreak' && action === 'insert') return { insertPageBreak: readLocation(given) }
  throw new Error(
    `it does "${String(action)}" with "${String(object)}": use a CONNECTOR of google-docs with updateDocument`,
  )
}

function readLocation({
  locationChoice = 'endOfSegmentLocation',
  insertSegment = 'body',
  segmentId,
  index,
}: Fields) {
  if ([locationChoice, insertSegment].some(isTemplate)) throw new Error('an expression says where it writes')
  return {
    [String(locationChoice)]: {
      segmentId: insertSegment === 'body' ? '' : keepText(segmentId ?? ''),
      ...(locationChoice === 'location' ? { index: keepTexts(index ?? 1) } : {}),
    },
  }
}
