import { isObject } from '../../json.ts'
import { type Fields, objectOf } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { fileOf } from '../nodes/fileparts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { modeOf, readOptionFields } from '../send/messenger.ts'
import {
  isTemplate,
  keepText,
  listObjects,
  plainText,
  quoteValue,
  writeCode,
  writeLiteral,
} from '../texts.ts'
import {
  demandOperation,
  readGoogleSignIn,
  readMost,
  type ServiceReader,
  type ServiceWork,
  type WorkReader,
} from './action.ts'

/** Google's Drive. */
export const readGoogleDrive: ServiceReader = (node, tools) => {
  const { parameters, version } = node
  if (version < 3)
    throw new Error(
      'it is of a version whose parameters are others: let n8n bring it to version 3, and import it again',
    )
  const usual: Record<string, string> = { file: 'upload', fileFolder: 'search', folder: 'create' }
  const { resource = 'file' } = parameters
  const operation = parameters.operation ?? usual[String(resource)]
  const read = demandOperation(OPERATIONS, 'Google Drive', { resource, operation })
  const credential = readGoogleSignIn(node, 'googleDriveOAuth2Api')
  return { connector: 'google-drive', credential, ...read(node, tools) }
}

const OPERATIONS: Record<string, WorkReader> = {
  'file.download': download,
  'file.upload': upload,
  'file.createFromText': createFromText,
  'file.copy': copy,
  'file.deleteFile': (node) => remove(node, node.parameters.fileId, 'id'),
  'file.move': ({ parameters }) => ({
    action: 'moveFile',
    input: { file: readId(parameters.fileId), folder: readFolder(parameters), fields: USUAL_FIELDS },
  }),
  'file.share': share,
  'file.update': update,
  'fileFolder.search': search,
  'folder.create': createFolder,
  'folder.deleteFolder': (node) => remove(node, node.parameters.folderNoRootId, 'fileId'),
  'folder.share': share,
}

/** What Google says of a file unless it is asked for more. */
const USUAL_FIELDS = 'kind,id,name,mimeType'

/** The id of a file or folder, which may stand in its address. */
function readId(given: unknown): unknown {
  const value = isObject(given) ? given.value : given
  if (modeOf(given) !== 'url') return keepText(value)
  if (isTemplate(value)) return `={{ (/[-\\w]{25,}/.exec(String(${writeCode(value)})) || [''])[0] }}`
  return /[-\w]{25,}/.exec(plainText(value) ?? '')?.[0] ?? ''
}

/** The folder that is named, or else the shared drive, or the top of the own one. */
function readFolder({ folderId, driveId }: Fields): unknown {
  const folder = folderId === undefined ? 'root' : readId(folderId)
  const drive = driveId === undefined ? 'My Drive' : readId(driveId)
  const top = drive === 'My Drive' || drive === '' ? 'root' : drive
  if (folder === 'root') return top
  if (!isTemplate(folder) || top === 'root') return folder
  return `={{ ((folder, drive) => folder !== 'root' ? folder : drive && drive !== 'My Drive' ? drive : 'root')(${writeCode(folder)}, ${writeCode(top)}) }}`
}

function readMore(options: Fields, report: ProblemReporter, known: string[] = []): Fields {
  const { propertiesUi, ...rest } = options
  for (const [key, value] of Object.entries(rest))
    if (!known.includes(key) && value !== false && value !== '')
      reportMissingOption(report, `parameters.options.${key}`, value)
  const values = listObjects(objectOf(propertiesUi).propertyValues)
  if (values.length === 0) return {}
  if (values.some(({ key }) => isTemplate(key))) throw new Error('an expression gives the name of a property')
  return {
    properties: Object.fromEntries(values.map(({ key, value }) => [plainText(key), keepText(value)])),
  }
}

function download(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { binaryPropertyName, googleFileConversion, fileName, ...rest } = readOptionFields(node, 'options')
  readMore(rest, report)
  const { docsToFormat, sheetsToFormat, slidesToFormat, drawingsToFormat } = objectOf(
    objectOf(googleFileConversion).conversion,
  )
  const formats = {
    ...{ documents: docsToFormat, spreadsheets: sheetsToFormat },
    ...{ presentations: slidesToFormat, drawings: drawingsToFormat },
  }
  const chosen = Object.entries(formats).filter(([, format]) => format)
  return {
    action: 'downloadFile',
    input: {
      file: readId(node.parameters.fileId),
      ...(fileName ? { name: keepText(fileName) } : {}),
      ...Object.fromEntries(chosen.map(([kind, format]) => [kind, keepText(format)])),
    },
    passes: true,
    file: keepText(binaryPropertyName || 'data'),
  }
}

function upload(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { parameters } = node
  const { simplifyOutput, ...options } = readOptionFields(node, 'options')
  if (isTemplate(simplifyOutput)) throw new Error('an expression says what it puts out')
  return {
    action: 'uploadFile',
    input: {
      file: fileOf(parameters.inputDataFieldName),
      ...(parameters.name ? { name: keepText(parameters.name) } : {}),
      folder: readFolder(parameters),
      ...readMore(options, report),
      ...(simplifyOutput === true ? { fields: USUAL_FIELDS } : {}),
    },
  }
}

function createFromText(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { parameters } = node
  const { convertToGoogleDocument = false, ...options } = readOptionFields(node, 'options')
  if (isTemplate(convertToGoogleDocument)) throw new Error('an expression says whether it makes a document')
  const own = { name: keepText(parameters.name || 'Untitled'), folder: readFolder(parameters), fields: 'id' }
  const text = keepText(parameters.content ?? '')
  const more = readMore(options, report)
  if (convertToGoogleDocument !== true)
    return { action: 'createText', input: { ...own, text: text === '' ? '={{ "" }}' : text, ...more } }
  if (Object.keys(more).length > 0)
    throw new Error('it gives the document properties: set them with a CONNECTOR behind it')
  return { action: 'createDocument', input: { ...own, text: text === '' ? '={{ "" }}' : text } }
}

function copy(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { parameters } = node
  const { sameFolder = true, fileId, name } = parameters
  const { copyRequiresWriterPermission, description, ...options } = readOptionFields(node, 'options')
  readMore(options, report)
  if (isTemplate(sameFolder)) throw new Error('an expression says whether the copy is in the same folder')
  const known = plainText(objectOf(fileId).cachedResultName)
  return {
    action: 'copyFile',
    input: {
      file: readId(fileId),
      ...(name ? { name: keepText(name) } : known ? { name: writeLiteral(`Copy of ${known}`) } : {}),
      ...(sameFolder === false ? { folder: readFolder(parameters) } : {}),
      ...(description ? { description: keepText(description) } : {}),
      ...(copyRequiresWriterPermission ? { copyRequiresWriterPermission } : {}),
      fields: USUAL_FIELDS,
    },
  }
}

function remove(node: SourceNode, file: unknown, key: string): ServiceWork {
  const { deletePermanently = false } = readOptionFields(node, 'options')
  if (isTemplate(deletePermanently)) throw new Error('an expression says whether it is deleted for good')
  return {
    action: deletePermanently === true ? 'deleteFile' : 'trashFile',
    input: { file: readId(file) },
    shape: `{"${key}": $item.id, "success": true}`,
  }
}

function share(node: SourceNode): ServiceWork {
  const { fileId, folderNoRootId, resource = 'file' } = node.parameters
  const permission = objectOf(objectOf(node.parameters.permissionsUi).permissionsValues)
  const given = { ...permission, ...readOptionFields(node, 'options') }
  const known = Object.entries(given).filter(([, value]) => value !== '')
  return {
    action: 'shareFile',
    input: {
      file: readId(resource === 'folder' ? folderNoRootId : fileId),
      ...{ role: '', type: '' },
      ...Object.fromEntries(
        known.map(([key, value]) => [key, typeof value === 'string' ? keepText(value) : value]),
      ),
    },
  }
}

function update(node: SourceNode, { report }: MapperTools): ServiceWork {
  const { parameters } = node
  const { fields, trashed, ...options } = readOptionFields(node, 'options')
  const { changeFileContent = false, inputDataFieldName, newUpdatedFileName } = parameters
  if ([changeFileContent, trashed].some(isTemplate)) throw new Error('an expression says what it changes')
  if (trashed === true)
    throw new Error(
      'it moves the file to the bin, in a way that does nothing: use a CONNECTOR with trashFile',
    )
  return {
    action: 'updateFile',
    input: {
      file: readId(parameters.fileId),
      ...(changeFileContent === true ? { content: fileOf(inputDataFieldName) } : {}),
      ...(newUpdatedFileName ? { name: keepText(newUpdatedFileName) } : {}),
      ...readMore(options, report),
      fields: fields === undefined ? USUAL_FIELDS : joinFields(fields),
    },
  }
}

function joinFields(fields: unknown): string {
  if (fields === undefined) return 'id, name'
  if (!Array.isArray(fields) || fields.some(isTemplate))
    throw new Error('an expression says which fields it reads')
  return fields.includes('*') ? '*' : fields.length === 0 ? 'id, name' : fields.join(', ')
}

const FOLDER = 'application/vnd.google-apps.folder'
const ESCAPE = String.raw`.replace(/[\\']/g, sign => '\\' + sign)`

function search(node: SourceNode): ServiceWork {
  const { parameters } = node
  const { searchMethod = 'name', queryString = '' } = parameters
  const {
    folderId,
    driveId,
    whatToSearch = 'all',
    fileTypes,
    includeTrashed = false,
  } = readOptionFields(node, 'filter')
  const { fields } = readOptionFields(node, 'options')
  if ([searchMethod, whatToSearch, fileTypes, includeTrashed].some(isTemplate))
    throw new Error('an expression says how it searches')
  const query: string[] = []
  const say = (text: string) => query.push(quoteValue(text))
  const wanted = `String(${writeCode(queryString)})`
  if (searchMethod === 'name') query.push(`"name contains '" + ${wanted}${ESCAPE} + "'"`)
  else query.push(wanted)
  const folder = folderId === undefined ? '' : readId(folderId)
  if (folder !== '' && folder !== 'root')
    query.push(`"'" + String(${writeCode(folder)})${ESCAPE} + "' in parents"`)
  const isFiltered = Object.keys(objectOf(parameters.filter)).length > 0
  if (isFiltered && whatToSearch === 'folders') say(`mimeType = '${FOLDER}'`)
  if (isFiltered && whatToSearch === 'files') say(`mimeType != '${FOLDER}'`)
  const types = Array.isArray(fileTypes) ? fileTypes.map((type) => plainText(type) ?? '') : []
  if (isFiltered && includeTrashed !== true) say('trashed = false')
  if (whatToSearch !== 'folders' && types.length > 0 && !types.includes('*'))
    say(`(${types.map((type) => `mimeType = '${type.replace(/[\\']/g, '\\$&')}'`).join(' or ')})`)
  const drive = driveId === undefined ? '' : readId(driveId)
  const isOwn = drive === 'My Drive' || (drive === '' && folder === 'root')
  return {
    action: 'searchFiles',
    input: {
      query: `={{ [${query.join(', ')}].filter(part => part).join(' and ') }}`,
      ...(drive === '' || drive === 'My Drive' ? {} : { drive }),
      ...(isOwn ? { mine: true } : {}),
      fields: joinFields(fields),
      ...readMost(node, { limit: 50 }),
    },
  }
}

function createFolder(node: SourceNode): ServiceWork {
  const { parameters } = node
  const { folderColorRgb, simplifyOutput = true } = readOptionFields(node, 'options')
  if (isTemplate(simplifyOutput)) throw new Error('an expression says what it puts out')
  return {
    action: 'createFolder',
    input: {
      name: keepText(parameters.name || 'Untitled'),
      folder: readFolder(parameters),
      ...(folderColorRgb ? { colour: keepText(folderColorRgb) } : {}),
      ...(simplifyOutput === false ? {} : { fields: USUAL_FIELDS }),
    },
  }
}
