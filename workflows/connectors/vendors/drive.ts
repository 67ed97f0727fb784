import type { Connector, ConnectorAction } from '../connector.ts'
import { flagInput, limitInput, nameInput, objectInput, textInput, usually } from '../schemas.ts'
import { DRIVES, FILE, FILES, fields, item, SAID } from './driveparts.ts'
import { FILE_CHANGES } from './drivewriting.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './google.ts'

const format = (mimeType: string, kind: string) =>
  usually(mimeType, nameInput(`Format of ${kind}`, `The type as which ${kind} of Google's own are saved.`))
const OFFICE = 'application/vnd.openxmlformats-officedocument'

const READING: Record<string, ConnectorAction> = {
  searchFiles: {
    name: 'Search files',
    summary: 'Lists files and folders, all or those that a query finds.',
    safety: 'REPEATABLE',
    input: objectInput({
      query: textInput('Query', "As Drive has it: name contains 'report' and trashed = false."),
      drive: textInput('Shared drive', 'Only in this one: its id.'),
      mine: flagInput('Mine only', 'Without shared drives.'),
      fields: usually(
        'id,name',
        textInput('Fields', 'What is said of each file, such as id,name,mimeType. All: *.'),
      ),
      orderBy: textInput('Order', 'Such as modifiedTime desc, or folder,name.'),
      limit: limitInput(),
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
    input: objectInput({ ...item, ...fields }, ['file']),
    steps: [{ name: 'get', method: 'GET', path: FILE, query: SAID }],
  },
  downloadFile: {
    name: 'Download a file',
    summary:
      "Gets a file of Drive as a file of the execution. Documents of Google's own are saved in another format.",
    safety: 'REPEATABLE',
    input: objectInput(
      {
        ...item,
        name: textInput('Name', 'The name that it gets here: its own, unless this is set.'),
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
  actions: { ...READING, ...FILE_CHANGES },
}
