import type { Connector, ConnectorAction, ConnectorMaking, ConnectorStep } from '../connector.ts'
import {
  choiceInput,
  fileInput,
  flagInput,
  limitInput,
  listInput,
  nameInput,
  objectInput,
  textInput,
  usually,
} from '../schemas.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './google.ts'

const ME = '/gmail/v1/users/me'
const MESSAGE = `${ME}/messages/{{ $input.message }}`

const message = nameInput('Message', 'The id of the message, as Gmail gives it.')
const content = {
  text: textInput('Text', 'The text of the mail.'),
  html: textInput('HTML', 'The text as HTML, in place of the other or beside it.'),
  attachments: listInput(
    fileInput('File', 'A file of the execution.'),
    'Attachments',
    'The files, in all up to 10 MB.',
  ),
}
const addresses = {
  cc: textInput('Copy to', 'Addresses with commas between them.'),
  bcc: textInput('Hidden copy to', 'Addresses with commas between them, which the others do not see.'),
  replyTo: textInput('Replies to', 'The address that replies go to.'),
  from: textInput('From', 'The sender: an address of the account. Its own, unless this is set.'),
}
const labels = listInput(
  nameInput('Label', 'The id of a label.'),
  'Labels',
  'The ids of labels, such as INBOX.',
  {
    minItems: 1,
    'x-options': 'labels',
  },
)

const given = (...keys: string[]) => Object.fromEntries(keys.map((key) => [key, `{{ $input.${key} }}`]))
const BODY = given('text', 'html', 'attachments')

/** The mail, which is written before it is sent. */
const write = (more: Record<string, string>): ConnectorMaking => ({
  name: 'mail',
  make: 'gmailMessage',
  of: { ...BODY, ...more },
})
const send = (thread?: string): ConnectorStep => ({
  name: 'send',
  method: 'POST',
  path: `${ME}/messages/send`,
  body: { raw: '{{ $nodes.mail }}', ...(thread === undefined ? {} : { threadId: thread }) },
})

const SENDING: Record<string, ConnectorAction> = {
  sendMessage: {
    name: 'Send a mail',
    summary: 'Sends a mail from the account.',
    safety: 'ONCE',
    input: objectInput(
      {
        to: nameInput('To', 'Addresses with commas between them.'),
        subject: textInput('Subject', 'The subject of the mail.'),
        ...content,
        ...addresses,
        senderName: textInput('Name of the sender', 'The name that is shown for the own address.'),
      },
      ['to', 'subject'],
    ),
    steps: [
      { name: 'profile', when: '$input.senderName', method: 'GET', path: `${ME}/profile` },
      write({
        ...given('to', 'cc', 'bcc', 'replyTo', 'from', 'subject', 'senderName'),
        own: '{{ $nodes.profile.emailAddress }}',
      }),
      send(),
    ],
  },
  replyMessage: {
    name: 'Reply to a mail',
    summary: 'Answers a mail in its thread: its sender, or all who got it.',
    safety: 'ONCE',
    input: objectInput(
      {
        message,
        ...content,
        all: usually(false, flagInput('To all', 'Answers all who got the mail.')),
        ...addresses,
      },
      ['message'],
    ),
    steps: [
      { name: 'profile', method: 'GET', path: `${ME}/profile` },
      { name: 'original', method: 'GET', path: MESSAGE, query: { format: 'metadata' } },
      {
        name: 'reply',
        make: 'gmailReply',
        of: {
          message: '{{ $nodes.original }}',
          own: '{{ $nodes.profile.emailAddress }}',
          all: '{{ $input.all }}',
        },
      },
      write({
        ...given('bcc', 'replyTo', 'from'),
        to: '{{ $nodes.reply.to }}',
        cc: '{{ $input.cc ? $input.cc : $nodes.reply.cc }}',
        ...Object.fromEntries(
          ['subject', 'inReplyTo', 'references'].map((key) => [key, `{{ $nodes.reply.${key} }}`]),
        ),
      }),
      send('{{ $nodes.reply.threadId }}'),
    ],
  },
  createDraft: {
    name: 'Create a draft',
    summary: 'Puts a mail among the drafts, to be sent by hand.',
    safety: 'ONCE',
    input: objectInput(
      {
        to: textInput('To', 'Addresses with commas between them.'),
        subject: textInput('Subject', 'The subject of the mail.'),
        ...content,
        ...addresses,
      },
      ['subject'],
    ),
    steps: [
      write(given('to', 'cc', 'bcc', 'replyTo', 'from', 'subject')),
      {
        name: 'draft',
        method: 'POST',
        path: `${ME}/drafts`,
        body: { message: { raw: '{{ $nodes.mail }}' } },
      },
    ],
  },
}

const change = (
  title: string,
  summary: string,
  body: Record<string, unknown>,
  more = {},
): ConnectorAction => ({
  name: title,
  summary,
  safety: 'REPEATABLE',
  input: objectInput({ message, ...more }, ['message', ...Object.keys(more)]),
  steps: [{ name: 'modify', method: 'POST', path: `${MESSAGE}/modify`, body }],
})

const CHANGING: Record<string, ConnectorAction> = {
  addLabels: change(
    'Add labels',
    'Gives a message labels.',
    { addLabelIds: '{{ $input.labels }}' },
    { labels },
  ),
  removeLabels: change(
    'Remove labels',
    'Takes labels from a message.',
    { removeLabelIds: '{{ $input.labels }}' },
    { labels },
  ),
  markRead: change('Mark as read', 'Marks a message as read.', { removeLabelIds: ['UNREAD'] }),
  markUnread: change('Mark as unread', 'Marks a message as unread.', { addLabelIds: ['UNREAD'] }),
  trashMessage: {
    name: 'Move to the bin',
    summary: 'Moves a message to the bin.',
    safety: 'REPEATABLE',
    input: objectInput({ message }, ['message']),
    steps: [{ name: 'trash', method: 'POST', path: `${MESSAGE}/trash` }],
  },
  deleteMessage: {
    name: 'Delete a mail',
    summary: 'Deletes a message for good, without the bin.',
    safety: 'REPEATABLE',
    input: objectInput({ message }, ['message']),
    steps: [{ name: 'delete', method: 'DELETE', path: MESSAGE, done: [404] }],
    result: { id: '{{ $input.message }}' },
  },
}

const format = usually(
  'simple',
  choiceInput(['simple', 'full', 'metadata'], 'What is read', 'What is read of each message.', [
    'Its headers as fields, the start of its text and its labels',
    'All of it, as the API gives it',
    'Its headers, as the API gives them',
  ]),
)
const QUERY = {
  format: '{{ $input.format = "full" ? "full" : "metadata" }}',
  metadataHeaders: `{{ $input.format = "simple" ? ["From", "To", "Cc", "Bcc", "Subject"] : null }}`,
}
const LABELS: ConnectorStep = {
  name: 'labels',
  when: '$input.format = "simple"',
  method: 'GET',
  path: `${ME}/labels`,
}

const READING: Record<string, ConnectorAction> = {
  getMessage: {
    name: 'Get a mail',
    summary: 'Reads a message.',
    safety: 'REPEATABLE',
    input: objectInput({ message, format }, ['message']),
    steps: [
      { name: 'get', method: 'GET', path: MESSAGE, query: QUERY },
      LABELS,
      {
        name: 'simple',
        when: '$input.format = "simple"',
        make: 'gmailSimple',
        of: { messages: '{{ [$nodes.get] }}', labels: '{{ $nodes.labels.labels }}' },
      },
    ],
    result: '{{ $input.format = "simple" ? $nodes.simple[0] : $nodes.get }}',
  },
  searchMessages: {
    name: 'Search mails',
    summary: 'Reads the messages that a search finds, the newest first.',
    safety: 'REPEATABLE',
    input: objectInput({
      query: textInput('Search', 'As in the search field of Gmail: from:ada@example.com is:unread.'),
      labels: { ...labels, description: 'Only messages with all of these labels.', minItems: 0 },
      includeSpamTrash: flagInput('Spam and bin, too', 'Also searches there.'),
      format,
      limit: limitInput(1_000),
    }),
    steps: [
      {
        name: 'list',
        method: 'GET',
        path: `${ME}/messages`,
        query: {
          q: '{{ $input.query ? $input.query : null }}',
          labelIds: '{{ $input.labels }}',
          includeSpamTrash: '{{ $input.includeSpamTrash }}',
          maxResults: '{{ $input.limit < 500 ? $input.limit : 500 }}',
        },
        pages: {
          items: '$item.messages',
          next: '$item.nextPageToken',
          into: { query: 'pageToken' },
          limit: '$input.limit',
        },
      },
      {
        name: 'messages',
        over: '{{ $nodes.list }}',
        method: 'GET',
        path: `${ME}/messages/{{ $item.id }}`,
        query: QUERY,
      },
      LABELS,
      {
        name: 'simple',
        when: '$input.format = "simple"',
        make: 'gmailSimple',
        of: { messages: '{{ $nodes.messages }}', labels: '{{ $nodes.labels.labels }}' },
      },
    ],
    result: '{{ $input.format = "simple" ? $nodes.simple : $nodes.messages }}',
  },
  getAttachment: {
    name: 'Get an attachment',
    summary: 'Gets an attachment of a message as a file of the execution.',
    safety: 'REPEATABLE',
    input: objectInput(
      {
        message,
        attachment: nameInput(
          'Attachment',
          'Its id: payload.parts.body.attachmentId of a message that is read in full.',
        ),
        name: nameInput('Name', 'The name that the file gets.'),
        mimeType: usually('application/octet-stream', nameInput('Type', 'The type of the file.')),
      },
      ['message', 'attachment', 'name'],
    ),
    steps: [
      { name: 'get', method: 'GET', path: `${MESSAGE}/attachments/{{ $input.attachment }}` },
      {
        name: 'file',
        make: 'gmailFile',
        of: { ...given('name', 'mimeType'), data: '{{ $nodes.get.data }}' },
      },
    ],
  },
  listLabels: {
    name: 'List labels',
    summary: 'Lists the labels of the account, with their ids.',
    safety: 'REPEATABLE',
    input: objectInput({}),
    steps: [{ name: 'labels', method: 'GET', path: `${ME}/labels` }],
    result: '{{ $nodes.labels.labels }}',
  },
  createLabel: {
    name: 'Create a label',
    summary: 'Adds a label to the account.',
    safety: 'ONCE',
    input: objectInput({ name: nameInput('Name', 'The name of the label.') }, ['name']),
    steps: [
      {
        name: 'create',
        method: 'POST',
        path: `${ME}/labels`,
        body: { name: '{{ $input.name }}', labelListVisibility: 'labelShow', messageListVisibility: 'show' },
      },
    ],
  },
}

/** Google's Gmail API: developers.google.com/workspace/gmail/api/reference/rest. */
export const GMAIL: Connector = {
  name: 'gmail',
  title: 'Gmail',
  summary: 'Mails, drafts and labels of an account.',
  version: 1,
  server: 'https://gmail.googleapis.com',
  signIn: [...GOOGLE_SIGN_IN],
  setup: describeSetup('Gmail API', [
    'https://www.googleapis.com/auth/gmail.modify',
    'https://mail.google.com/ to delete for good',
  ]),
  options: {
    labels: {
      steps: [{ name: 'labels', method: 'GET', path: `${ME}/labels` }],
      list: '$nodes.labels.labels.{"value": id, "label": name}',
    },
  },
  actions: { ...SENDING, ...READING, ...CHANGING },
}
