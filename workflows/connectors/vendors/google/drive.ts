import type { Connector, ConnectorAction, ConnectorStep } from '../../connector.ts'
import { choice, file, flag, limit, name, object, record, text, usually } from '../../schemas.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './account.ts'

const item = { file: name('File', 'The file or folder: its id, the long part of its address.') }
const folder = name('Folder', 'The folder: its id, or root for the top of the Drive.', {
  'x-options': 'folders',
})
const parent = { folder: usually('root', folder) }
const fields = {
  fields: usually('*', text('Fields', 'What is said of the file, such as id,name,webViewLink. All: *.')),
}
const called = { name: name('Name', 'The name of the file.') }

const FILES = '/drive/v3/files'
const FILE = `${FILES}/{{ $input.file }}`
const DRIVES = { supportsAllDrives: 'true' }
const SAID = { ...DRIVES, fields: '{{ $input.fields }}' }

/** An id of Google's own, got once for all attempts: what is created with it is created once. */
const MAKE_ID: ConnectorStep = {
  name: 'ids',
  method: 'GET',
  path: `${FILES}/generateIds`,
  query: { count: '1', type: 'files' },
  keep: true,
}

/** Creates the file with that id, without any content. */
const create = (mimeType: string): ConnectorStep => ({
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

const more = {
  description: text('Description', 'What is said of the file.'),
  properties: record('Properties', 'Values that are kept with the file, by their names.'),
}

const WRITING: Record<string, ConnectorAction> = {
  uploadFile: {
    name: 'Upload a file',
    summary: 'Puts a file into a folder, and outputs what Drive says of it.',
    safety: 'REPEATABLE',
    input: object(
      {
        file: file('File', 'The file: one of the execution.'),
        name: text('Name', 'The name that it gets: its own, unless this is set.'),
        ...{ ...parent, ...more, ...fields },
      },
      ['file'],
    ),
    steps: [
      MAKE_ID,
      {
        ...create('{{ $input.file.file.mimeType }}'),
        body: {
          ...Object(create('{{ $input.file.file.mimeType }}').body),
          name: '{{ $input.name ? $input.name : $input.file.file.name }}',
        },
      },
      {
        name: 'content',
        method: 'PATCH',
        path: `/upload${FILES}/{{ $nodes.ids.ids[0] }}`,
        query: { ...SAID, uploadType: 'media' },
        body: '{{ $input.file }}',
        bodyType: 'file',
      },
    ],
  },
  createText: {
    name: 'Create a file from a text',
    summary: 'Puts a text into a folder as a file, and outputs what Drive says of it.',
    safety: 'REPEATABLE',
    input: object(
      {
        ...called,
        text: text('Text', 'What stands in the file.'),
        mimeType: usually('text/plain', name('Type', 'The type of the file, such as text/markdown.')),
        ...{ ...parent, ...more, ...fields },
      },
      ['name', 'text'],
    ),
    steps: [
      MAKE_ID,
      create('{{ $input.mimeType }}'),
      {
        name: 'content',
        method: 'PATCH',
        path: `/upload${FILES}/{{ $nodes.ids.ids[0] }}`,
        query: { ...SAID, uploadType: 'media' },
        body: '{{ $input.text }}',
        bodyType: 'text',
        contentType: '{{ $input.mimeType & "; charset=utf-8" }}',
      },
    ],
  },
  createDocument: {
    name: 'Create a document from a text',
    summary: "Makes a document of Google's own of a text.",
    safety: 'ONCE',
    input: object({ ...called, text: text('Text', 'What stands in the document.'), ...parent, ...fields }, [
      'name',
      'text',
    ]),
    steps: [
      {
        name: 'create',
        method: 'POST',
        path: FILES,
        query: DRIVES,
        body: {
          name: '{{ $input.name }}',
          parents: '{{ [$input.folder] }}',
          mimeType: 'application/vnd.google-apps.document',
        },
      },
      {
        name: 'content',
        method: 'PATCH',
        path: `/upload${FILES}/{{ $nodes.create.id }}`,
        query: { ...SAID, uploadType: 'media' },
        body: '{{ $input.text }}',
        bodyType: 'text',
        contentType: 'text/plain; charset=utf-8',
        repeatable: true,
      },
    ],
  },
  createFolder: {
    name: 'Create a folder',
    summary: 'Creates a folder in a folder.',
    safety: 'ONCE',
    input: object(
      { ...called, ...parent, colour: text('Colour', 'Its colour, such as #ff0000.'), ...fields },
      ['name'],
    ),
    steps: [
      {
        name: 'create',
        method: 'POST',
        path: FILES,
        query: SAID,
        body: {
          name: '{{ $input.name }}',
          parents: '{{ [$input.folder] }}',
          mimeType: 'application/vnd.google-apps.folder',
          folderColorRgb: '{{ $input.colour }}',
        },
      },
    ],
  },
  copyFile: {
    name: 'Copy a file',
    summary: 'Makes a copy of a file, in its folder or in another.',
    safety: 'ONCE',
    input: object(
      {
        ...item,
        name: text('Name', 'The name of the copy: "Copy of" and its name, unless this is set.'),
        folder: { ...folder, description: 'The folder of the copy; that of the file, unless this is set.' },
        description: more.description,
        copyRequiresWriterPermission: flag(
          'No copies',
          'Those who may only read it cannot copy or print it.',
        ),
        ...fields,
      },
      ['file'],
    ),
    steps: [
      {
        name: 'copy',
        method: 'POST',
        path: `${FILE}/copy`,
        query: SAID,
        body: {
          name: '{{ $input.name }}',
          parents: '{{ $input.folder ? [$input.folder] : null }}',
          description: '{{ $input.description }}',
          copyRequiresWriterPermission: '{{ $input.copyRequiresWriterPermission }}',
        },
      },
    ],
  },
  updateFile: {
    name: 'Update a file',
    summary: 'Gives a file another name, other content or other properties; the rest stays.',
    safety: 'REPEATABLE',
    input: object(
      {
        ...item,
        name: text('Name', 'The new name of the file.'),
        content: file('Content', 'The new content: a file of the execution.'),
        trashed: flag('In the bin', 'Whether the file is in the bin.'),
        ...{ ...more, ...fields },
      },
      ['file'],
    ),
    steps: [
      {
        name: 'content',
        when: '$input.content',
        method: 'PATCH',
        path: `/upload${FILE}`,
        query: { ...DRIVES, uploadType: 'media' },
        body: '{{ $input.content }}',
        bodyType: 'file',
      },
      {
        name: 'update',
        method: 'PATCH',
        path: FILE,
        query: SAID,
        body: {
          name: '{{ $input.name }}',
          trashed: '{{ $input.trashed }}',
          description: '{{ $input.description }}',
          properties: '{{ $input.properties }}',
          mimeType: '{{ $input.content.file.mimeType }}',
        },
      },
    ],
  },
  moveFile: {
    name: 'Move a file',
    summary: 'Moves a file or folder into another folder.',
    safety: 'REPEATABLE',
    input: object({ ...item, folder, ...fields }, ['file', 'folder']),
    steps: [
      { name: 'get', method: 'GET', path: FILE, query: { ...DRIVES, fields: 'parents' } },
      {
        name: 'move',
        method: 'PATCH',
        path: FILE,
        query: {
          ...SAID,
          addParents: '{{ $input.folder }}',
          removeParents: '{{ $join($nodes.get.parents[$ != $input.folder], ",") }}',
        },
        body: {},
      },
    ],
  },
  trashFile: {
    name: 'Move a file to the bin',
    summary: 'Moves a file or folder to the bin, from where it can be brought back.',
    safety: 'REPEATABLE',
    input: object(item, ['file']),
    steps: [{ name: 'trash', method: 'PATCH', path: FILE, query: DRIVES, body: { trashed: true } }],
    result: { id: '{{ $input.file }}' },
  },
  deleteFile: {
    name: 'Delete a file',
    summary: 'Deletes a file or folder for good, without the bin.',
    safety: 'REPEATABLE',
    input: object(item, ['file']),
    steps: [{ name: 'delete', method: 'DELETE', path: FILE, query: DRIVES, done: [404] }],
    result: { id: '{{ $input.file }}' },
  },
  shareFile: {
    name: 'Share a file',
    summary: 'Gives a person, a group or everyone access to a file.',
    safety: 'ONCE',
    input: object(
      {
        ...item,
        role: choice(
          ['reader', 'commenter', 'writer', 'fileOrganizer', 'organizer', 'owner'],
          'Role',
          'What they may do.',
        ),
        type: choice(['user', 'group', 'domain', 'anyone'], 'For', 'Who gets access.'),
        emailAddress: text('Address', 'The address of the person or group.'),
        domain: text('Domain', 'The domain.'),
        allowFileDiscovery: flag(
          'Can be found',
          'With domain or anyone: by searching, and not only by the link.',
        ),
        emailMessage: text('Message', 'What stands in the mail that tells them.'),
        sendNotificationEmail: flag('Tell them', 'Whether they get a mail.'),
        transferOwnership: flag('New owner', 'With the role owner: must be true.'),
        moveToNewOwnersRoot: flag('Move it', 'With a new owner: moves it to the top of their Drive.'),
        useDomainAdminAccess: flag(
          'As an administrator',
          'With the rights of an administrator of the domain.',
        ),
      },
      ['file', 'role', 'type'],
    ),
    steps: [
      {
        name: 'share',
        method: 'POST',
        path: `${FILE}/permissions`,
        query: {
          ...DRIVES,
          ...Object.fromEntries(
            [
              'emailMessage',
              'sendNotificationEmail',
              'transferOwnership',
              'moveToNewOwnersRoot',
              'useDomainAdminAccess',
            ].map((key) => [key, `{{ $input.${key} }}`]),
          ),
        },
        body: Object.fromEntries(
          ['role', 'type', 'emailAddress', 'domain', 'allowFileDiscovery'].map((key) => [
            key,
            `{{ $input.${key} }}`,
          ]),
        ),
      },
    ],
  },
}

const format = (mimeType: string, kind: string) =>
  usually(mimeType, name(`Format of ${kind}`, `The type as which ${kind} of Google's own are saved.`))
const OFFICE = 'application/vnd.openxmlformats-officedocument'

const READING: Record<string, ConnectorAction> = {
  searchFiles: {
    name: 'Search files',
    summary: 'Lists files and folders, all or those that a query finds.',
    safety: 'REPEATABLE',
    input: object({
      query: text('Query', "As Drive has it: name contains 'report' and trashed = false."),
      drive: text('Shared drive', 'Only in this one: its id.'),
      mine: flag('Mine only', 'Without shared drives.'),
      fields: usually(
        'id,name',
        text('Fields', 'What is said of each file, such as id,name,mimeType. All: *.'),
      ),
      orderBy: text('Order', 'Such as modifiedTime desc, or folder,name.'),
      limit: limit(),
    }),
    steps: [
      {
        name: 'list',
        method: 'GET',
        path: FILES,
        query: {
          q: '{{ $input.query ? $input.query : null }}',
          fields: 'nextPageToken,files({{ $input.fields }})',
          orderBy: '{{ $input.orderBy }}',
          pageSize: '{{ $input.limit < 1000 ? $input.limit : 1000 }}',
          driveId: '{{ $input.drive ? $input.drive : null }}',
          corpora: '{{ $input.drive ? "drive" : $input.mine ? "user" : "allDrives" }}',
          includeItemsFromAllDrives: '{{ $input.mine ? "false" : "true" }}',
          supportsAllDrives: '{{ $input.mine ? "false" : "true" }}',
        },
        pages: {
          items: '$item.files',
          next: '$item.nextPageToken',
          into: { query: 'pageToken' },
          limit: '$input.limit',
        },
      },
    ],
  },
  getFile: {
    name: 'Get a file',
    summary: 'Reads what Drive says of a file; not its content.',
    safety: 'REPEATABLE',
    input: object({ ...item, ...fields }, ['file']),
    steps: [{ name: 'get', method: 'GET', path: FILE, query: SAID }],
  },
  downloadFile: {
    name: 'Download a file',
    summary:
      "Gets a file of Drive as a file of the execution. Documents of Google's own are saved in another format.",
    safety: 'REPEATABLE',
    input: object(
      {
        ...item,
        name: text('Name', 'The name that it gets here: its own, unless this is set.'),
        documents: format(`${OFFICE}.wordprocessingml.document`, 'documents'),
        spreadsheets: format(`${OFFICE}.spreadsheetml.sheet`, 'spreadsheets'),
        presentations: format(`${OFFICE}.presentationml.presentation`, 'presentations'),
        drawings: format('image/jpeg', 'drawings'),
      },
      ['file'],
    ),
    steps: [
      { name: 'about', method: 'GET', path: FILE, query: { ...DRIVES, fields: 'mimeType,name' } },
      {
        name: 'plan',
        make: 'driveFormat',
        of: {
          mimeType: '{{ $nodes.about.mimeType }}',
          document: '{{ $input.documents }}',
          spreadsheet: '{{ $input.spreadsheets }}',
          presentation: '{{ $input.presentations }}',
          drawing: '{{ $input.drawings }}',
        },
      },
      {
        name: 'export',
        when: '$nodes.plan.mimeType',
        method: 'GET',
        path: `${FILE}/export`,
        query: { mimeType: '{{ $nodes.plan.mimeType }}' },
        answer: 'file',
        fileName: '{{ $input.name ? $input.name : $nodes.about.name }}',
      },
      {
        name: 'content',
        when: '$not($boolean($nodes.plan.mimeType))',
        method: 'GET',
        path: FILE,
        query: { ...DRIVES, alt: 'media' },
        answer: 'file',
        fileName: '{{ $input.name ? $input.name : $nodes.about.name }}',
      },
    ],
  },
}

/** Google's Drive API, version 3: developers.google.com/workspace/drive/api/reference/rest/v3. */
export const GOOGLE_DRIVE: Connector = {
  name: 'google-drive',
  title: 'Google Drive',
  summary: 'Files and folders in a Drive.',
  version: 1,
  server: 'https://www.googleapis.com',
  signIn: [...GOOGLE_SIGN_IN],
  setup: describeSetup('Google Drive API', ['https://www.googleapis.com/auth/drive']),
  options: {
    folders: {
      steps: [
        {
          name: 'files',
          method: 'GET',
          path: FILES,
          query: {
            q: "mimeType='application/vnd.google-apps.folder' and trashed=false",
            fields: 'files(id,name)',
            pageSize: '1000',
          },
        },
      ],
      list: '$nodes.files.files.{"value": id, "label": name}',
    },
  },
  actions: { ...READING, ...WRITING },
}
