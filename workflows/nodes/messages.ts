import * as v from 'valibot'
import { described, strictRecord } from '../object.ts'
import { anyObject, credentialField, nodeTypeRow, oneOf, textField } from './fields.ts'

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
            attachments: 'A file, or a list of files, of this execution.',
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
    summary: 'Sends a message or files to Slack, Telegram or Discord; outputs {messageId, to, response}.',
    config: v.pipe(
      v.object(
        described(
          {
            credentialId: credentialField,
            to: idField,
            text: v.optional(v.string('must be a string')),
            format: v.optional(oneOf('plain', 'markdown', 'html')),
            thread: v.optional(idField),
            replyTo: v.optional(idField),
            files: v.optional(files),
            options: v.optional(anyObject),
            repeat,
          },
          {
            credentialId: 'The account of Slack, Telegram or Discord that sends it.',
            to: 'The channel or chat: C0123 or #general at Slack, a number or @name at Telegram, the id of a channel at Discord.',
            text: 'What it says.',
            format:
              'How the text is read. Without it as Markdown at Slack and Discord, as plain text at Telegram.',
            thread: 'The thread: thread_ts at Slack, the topic at Telegram, the id of the thread at Discord.',
            replyTo: 'The id of the message that it answers.',
            files: 'A file, or a list of at most 10 files, of this execution.',
            options: "More of the vendor's own fields, such as blocks, reply_markup or embeds.",
            repeat: 'Rather twice than never: sends it again if nobody knows whether it went out.',
          },
        ),
      ),
      v.forward(
        v.check(
          ({ text, files, options }) => [text, files, options].some((field) => field !== undefined),
          'is required, or files, or options',
        ),
        ['text'],
      ),
    ),
    main: ['credentialId', 'to', 'text', 'format'],
    credentialUses: ['CHAT'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 120_000,
  }),
} as const
