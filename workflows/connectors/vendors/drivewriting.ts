import type { ConnectorAction } from '../connector.ts'
import { choiceInput, fileInput, flagInput, nameInput, objectInput, textInput, usually } from '../schemas.ts'
import {
  called,
  create,
  DRIVES,
  FILE,
  FILES,
  fields,
  folder,
  item,
  MAKE_ID,
  more,
  parent,
  SAID,
} from './driveparts.ts'

/** What changes files. */
export const FILE_CHANGES: Record<string, ConnectorAction> = {
  uploadFile: {
    name: 'Upload a file',
    summary: 'Puts a file into a folder, and outputs what Drive says of it.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        file: fileInput('File', 'The file: one of the execution.'),
        name: textInput('Name', 'The name that it gets: its own, unless this is set.'),
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
    input: objectInput(
      {
        ...called,
        text: textInput('Text', 'What stands in the file.'),
        mimeType: usually('text/plain', nameInput('Type', 'The type of the file, such as text/markdown.')),
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
    name: 'Create a document',
    summary: "Makes a document of Google's own, of a text or an empty one.",
    safety: 'ONCE',
    input: objectInput(
      {
        ...called,
        text: textInput('Text', 'What stands in the document. Nothing, unless it is set.'),
        ...parent,
        ...fields,
      },
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
          mimeType: 'application/vnd.google-apps.document',
        },
      },
      {
        name: 'content',
        when: '$exists($input.text)',
        method: 'PATCH',
        path: `/upload${FILES}/{{ $nodes.create.id }}`,
        query: { ...SAID, uploadType: 'media' },
        body: '{{ $input.text }}',
        bodyType: 'text',
        contentType: 'text/plain; charset=utf-8',
        repeatable: true,
      },
    ],
    result: '{{ $exists($nodes.content) ? $nodes.content : $nodes.create }}',
  },
  createFolder: {
    name: 'Create a folder',
    summary: 'Creates a folder in a folder.',
    safety: 'ONCE',
    input: objectInput(
      { ...called, ...parent, colour: textInput('Colour', 'Its colour, such as #ff0000.'), ...fields },
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
    input: objectInput(
      {
        ...item,
        name: textInput('Name', 'The name of the copy: "Copy of" and its name, unless this is set.'),
        folder: { ...folder, description: 'The folder of the copy; that of the file, unless this is set.' },
        description: more.description,
        copyRequiresWriterPermission: flagInput(
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
    input: objectInput(
      {
        ...item,
        name: textInput('Name', 'The new name of the file.'),
        content: fileInput('Content', 'The new content: a file of the execution.'),
        trashed: flagInput('In the bin', 'Whether the file is in the bin.'),
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
    input: objectInput({ ...item, folder, ...fields }, ['file', 'folder']),
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
    input: objectInput(item, ['file']),
    steps: [{ name: 'trash', method: 'PATCH', path: FILE, query: DRIVES, body: { trashed: true } }],
    result: { id: '{{ $input.file }}' },
  },
  deleteFile: {
    name: 'Delete a file',
    summary: 'Deletes a file or folder for good, without the bin.',
    safety: 'REPEATABLE',
    input: objectInput(item, ['file']),
    steps: [{ name: 'delete', method: 'DELETE', path: FILE, query: DRIVES, done: [404] }],
    result: { id: '{{ $input.file }}' },
  },
  shareFile: {
    name: 'Share a file',
    summary: 'Gives a person, a group or everyone access to a file.',
    safety: 'ONCE',
    input: objectInput(
      {
        ...item,
        role: choiceInput(
          ['reader', 'commenter', 'writer', 'fileOrganizer', 'organizer', 'owner'],
          'Role',
          'What they may do.',
        ),
        type: choiceInput(['user', 'group', 'domain', 'anyone'], 'For', 'Who gets access.'),
        emailAddress: textInput('Address', 'The address of the person or group.'),
        domain: textInput('Domain', 'The domain.'),
        allowFileDiscovery: flagInput(
          'Can be found',
          'With domain or anyone: by searching, and not only by the link.',
        ),
        emailMessage: textInput('Message', 'What stands in the mail that tells them.'),
        sendNotificationEmail: flagInput('Tell them', 'Whether they get a mail.'),
        transferOwnership: flagInput('New owner', 'With the role owner: must be true.'),
        moveToNewOwnersRoot: flagInput('Move it', 'With a new owner: moves it to the top of their Drive.'),
        useDomainAdminAccess: flagInput(
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
