import * as v from 'valibot'
import { described, strictObject, strictRecord } from '../object.ts'
import { anyObject, computed, credentialField, demandKeys, nodeTypeRow, oneOf, textField } from './fields.ts'

const textOrList = v.union(
  [textField, v.pipe(v.array(textField), v.minLength(1), v.maxLength(50))],
  'must be a text with addresses, or a list of them',
)
const files = v.union(
  [textField, v.array(v.unknown()), anyObject],
  'must be a list of files, or an expression in {{ }} that gives one',
)
const repeat = v.optional(v.boolean('must be true or false'), false)
const number = v.pipe(v.number('must be a text or a number'), v.integer('must be a whole number'))
/** The id of a channel, a chat or a message. Telegram's are numbers. */
const idField = v.union([textField, number], 'must be a text or a number')

/** The most bytes that the texts of a mail may have each, and the whole mail with its attachments. */
export const MAX_MAIL_TEXT_BYTES = 1024 * 1024
export const MAX_MAIL_BYTES = 25 * 1024 * 1024
/** To how many addresses a mail may go. */
export const MAX_RECIPIENTS = 50

const button = strictObject(
  described(
    { text: textField, url: v.optional(textField), value: v.optional(textField) },
    {
      text: 'The text on it.',
      url: 'The page that it opens.',
      value: 'What the vendor says of it when it is pressed; without it and without a URL its text.',
    },
  ),
)
/** A button under a message: one that opens a page, or one whose value comes back when it is pressed. */
export type Button = v.InferOutput<typeof button>
const row = v.pipe(v.array(button), v.minLength(1, 'must not be empty'), v.maxLength(25))
const BUTTONS = 'must be a list of buttons {text, url or value}, or a list of rows of them'
export const buttonsField = v.union(
  [v.pipe(row, v.title('Buttons')), v.pipe(v.array(row), v.minLength(1), v.maxLength(100), v.title('Rows'))],
  BUTTONS,
)

const OPERATIONS = ['send', 'edit', 'delete', 'react', 'action', 'call', 'download'] as const
export type ChatOperation = (typeof OPERATIONS)[number]

/** Node types that send something to people. */
export const MESSAGE_NODES = {
  SEND_EMAIL: nodeTypeRow('effect', {
    summary: 'Sends a mail over SMTP, never twice; outputs {messageId, accepted, rejected, response}.',
    config: v.pipe(
      v.object(
        described(
          {
            credentialId: credentialField,
            from: v.optional(textField),
            to: v.optional(textOrList),
            cc: v.optional(textOrList),
            bcc: v.optional(textOrList),
            replyTo: v.optional(textOrList),
            subject: v.string('must be a string'),
            text: v.optional(v.string('must be a string')),
            html: v.optional(v.string('must be a string')),
            attachments: v.optional(files),
            headers: v.optional(strictRecord(v.string('must be a string'))),
            repeat,
          },
          {
            credentialId: 'The mail server, and how to sign in there.',
            from: 'Who it is from. Without it what the credential says.',
            to: 'Whom it is to: ada@example.com or Ada Byron <ada@example.com>, several with commas.',
            cc: 'Who gets a copy.',
            bcc: 'Who gets a copy that the others do not see.',
            replyTo: 'Where answers go.',
            subject: 'The subject, one line.',
            text: 'What it says, as plain text.',
            html: 'What it says, as HTML.',
            attachments:
              'A file, or a list of files, of this execution: file values, or {file, fileName, cid} for another name, and for an image that the HTML shows as cid:.',
            headers: 'Further headers, such as X-Campaign or List-Unsubscribe.',
            repeat: 'Rather twice than never: sends it again if nobody knows whether it went out.',
          },
        ),
      ),
      v.forward(
        v.check(
          ({ to, cc, bcc }) => [to, cc, bcc].some((field) => field !== undefined),
          'is required, or cc, or bcc: a mail needs somebody to go to',
        ),
        ['to'],
      ),
      v.forward(
        v.check(
          ({ text, html, attachments }) => [text, html, attachments].some((field) => field !== undefined),
          'is required, or html, or attachments',
        ),
        ['text'],
      ),
    ),
    main: ['credentialId', 'to', 'subject', 'text', 'html', 'attachments'],
    credentialUses: ['MAIL'],
    // Servers that do not know a sender yet want them to come again some minutes later.
    retry: { maxAttempts: 5, initialIntervalMs: 5_000, backoffCoefficient: 4, maxIntervalMs: 300_000 },
    timeoutMs: 300_000,
  }),
  CHAT_MESSAGE: nodeTypeRow('effect', {
    summary:
      'Sends, edits or deletes a message of a chat, reacts to it, calls another method of the vendor, or downloads a ' +
      'file; outputs {messageId, to, response}, and of a download {file, response}.',
    config: v.pipe(
      v.object(
        described(
          {
            credentialId: credentialField,
            operation: v.optional(oneOf(...OPERATIONS), 'send'),
            to: v.optional(idField),
            from: v.optional(idField),
            text: v.optional(v.string('must be a string')),
            format: v.optional(oneOf('plain', 'markdown', 'html')),
            buttons: v.optional(computed(buttonsField)),
            thread: v.optional(idField),
            replyTo: v.optional(idField),
            files: v.optional(files),
            message: v.optional(idField),
            reaction: v.optional(textField),
            remove: v.optional(v.boolean('must be true or false')),
            action: v.optional(textField),
            method: v.optional(textField),
            body: v.optional(v.union([textField, anyObject], 'must be an object, or an expression in {{ }}')),
            file: v.optional(textField),
            options: v.optional(anyObject),
            output: v.optional(oneOf('message', 'answer')),
            repeat,
          },
          {
            credentialId:
              'The account that does it: of Slack, Telegram, Discord, Mattermost, WhatsApp or Twilio, or a webhook of Discord.',
            operation: 'What it does. Without it a message is sent.',
            to: 'The channel, chat or number: C0123 or #general at Slack, a number or @name at Telegram, the id of a channel at Discord and Mattermost, +15551234567 at WhatsApp and Twilio. A webhook needs none.',
            from: "The sender: the id of the number at WhatsApp; the number, or a messaging service's SID, at Twilio.",
            text: 'What it says.',
            format:
              'How the text is read. Without it as Markdown at Slack, Discord and Mattermost, else as plain text.',
            buttons:
              'Buttons below it, as a list, or as rows of them: each with a text, and a url or a value. Not at Mattermost and Twilio.',
            thread:
              'The thread: thread_ts at Slack, the topic at Telegram, the id of the thread at Discord, of the first post at Mattermost.',
            replyTo: 'The id of the message that it answers.',
            files:
              'A file, or a list of at most 10 files, of this execution; one at WhatsApp. Each a file value, or {file, fileName} for another name. For call an object of them, by the names of the fields of the form that is sent.',
            message: 'The id of the message that is edited, deleted or reacted to.',
            reaction: 'The reaction: an emoji, at Slack and Mattermost its name.',
            remove: 'Takes the reaction back.',
            action: 'What the chat shows for some seconds. Without it typing; Telegram knows more.',
            method:
              "One of the vendor's own methods: pinChatMessage at Telegram, conversations.invite at Slack, else a verb and a path: PUT channels/1/pins/2.",
            body: 'What the method is given.',
            file: 'The file_id of the file at Telegram that is downloaded.',
            options: "More of the vendor's own fields, such as blocks, reply_markup or embeds.",
            output: 'With answer the output is the whole answer of the vendor, as it came.',
            repeat: 'Rather twice than never: does it again if nobody knows whether it was done.',
          },
        ),
      ),
      demandKeys({
        edit: ['message'],
        delete: ['message'],
        react: ['message', 'reaction'],
        call: ['method'],
        download: ['file'],
      }),
      v.forward(
        v.check(
          ({ operation, text, files, options, buttons }) =>
            (operation !== 'send' && operation !== 'edit') ||
            [text, files, options, buttons].some((field) => field !== undefined),
          'is required, or files, or options',
        ),
        ['text'],
      ),
    ),
    main: ['credentialId', 'operation'],
    mainBy: {
      key: 'operation',
      keys: {
        '': ['to', 'text', 'format', 'buttons'],
        send: ['to', 'text', 'format', 'buttons'],
        edit: ['to', 'message', 'text', 'format', 'buttons'],
        delete: ['to', 'message'],
        react: ['to', 'message', 'reaction', 'remove'],
        action: ['to', 'action'],
        call: ['method', 'body'],
        download: ['file'],
      },
    },
    credentialUses: ['CHAT'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 120_000,
  }),
} as const
