import type { ConnectorStep } from '../connector.ts'
import { nameInput, recordInput, textInput, usually } from '../schemas.ts'

export const item = { file: nameInput('File', 'The file or folder: its id, the long part of its address.') }
export const folder = nameInput('Folder', 'The folder: its id, or root for the top of the Drive.', {
  'x-options': 'folders',
})
export const parent = { folder: usually('root', folder) }
export const fields = {
  fields: usually('*', textInput('Fields', 'What is said of the file, such as id,name,webViewLink. All: *.')),
}
export const called = { name: nameInput('Name', 'The name of the file.') }

export const FILES = '/drive/v3/files'
export const FILE = `${FILES}/{{ $input.file }}`
export const DRIVES = { supportsAllDrives: 'true' }
export const SAID = { ...DRIVES, fields: '{{ $input.fields }}' }

/** An id of Google's own, got once for all attempts: what is created with it is created once. */
export const MAKE_ID: ConnectorStep = {
  name: 'ids',
  method: 'GET',
  path: `${FILES}/generateIds`,
  query: { count: '1', type: 'files' },
  keep: true,
}

/** Creates the file with that id, without any content. */
export const create = (mimeType: string): ConnectorStep => ({
  name: 'create',
  method: 'POST',
  path: FILES,
  query: DRIVES,
  body: {
    id: '{{ $nodes.ids.ids[0] }}',
    name: '{{ $input.name }}',
    parents: '{{ [$input.folder] }}',
    mimeType,
    properties: '{{ $input.properties }}',
    description: '{{ $input.description }}',
  },
  done: [409],
})

export const more = {
  description: textInput('Description', 'What is said of the file.'),
  properties: recordInput('Properties', 'Values that are kept with the file, by their names.'),
}
