import { expect, test } from 'vitest'
import { convertWorkflow } from '../../../workflows/n8n/convert.ts'
import { atOnce } from '../../support/atonce.ts'
import { importDocument } from './importing.ts'

type Fields = Record<string, unknown>

/** A document with one node of that type behind a manual trigger, and what it became. */
function importNode(type: string, parameters: Fields, more: Fields = {}) {
  const node = { name: 'Say', type: `n8n-nodes-base.${type}`, typeVersion: 2, parameters, ...more }
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, parameters: {} }
  const main = [[{ node: 'Say', type: 'main', index: 0 }]]
  const document = { nodes: [start, node], connections: { Start: { main } }, settings: {} }
  const { nodes, problems, report } = importDocument(document)!
  const { needs } = atOnce(convertWorkflow(document, () => undefined))!
  expect(problems).toEqual([])
  const made = (nodes as { type: string; config: Fields }[]).find((one) => !one.type.endsWith('TRIGGER'))!
  return { ...made, report, needs }
}

test.each([
  [
    'telegram',
    { operation: 'sendPhoto', binaryData: '={{ true }}', chatId: '1' },
    'an expression says whether it sends a file',
  ],
  ['telegram', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['slack', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['slack', { resource: 'file' }, 'it uploads a text: make a file of it'],
  ['slack', { resource: 'userGroup', operation: 'create' }, 'Perdure has no "create" of "userGroup"'],
  ['discord', { resource: 'message', sendTo: 'user' }, 'it sends to a user'],
  ['emailSend', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['mattermost', { resource: 'user', operation: 'create' }, 'Perdure has no "create" of "user"'],
  ['whatsApp', { messageType: 'contacts' }, 'it sends "contacts"'],
])('%s with %j stops by name', (type, parameters, why) => {
  const { type: made, report } = importNode(type, parameters)
  expect(made).toBe('STOP_AND_ERROR')
  expect(report.problems.map(({ message }) => message).join()).toContain(why)
})

const DATA = '={{ $binary["data"] }}'

test.each([
  [
    'telegram',
    { operation: 'sendPhoto', binaryData: true, chatId: '1', additionalFields: { fileName: 'a.png' } },
    {
      method: 'sendPhoto',
      body: { chat_id: '1', disable_notification: false },
      files: { photo: '={{ ({ file: $binary["data"], fileName: "a.png" }) }}' },
    },
  ],
  ['telegram', { resource: 'file', fileId: 'F' }, { operation: 'download', file: 'F' }],
  [
    'slack',
    {
      ...{ resource: 'file', binaryData: true },
      options: { channelIds: ['C1', 'C2'], title: 'T', initialComment: 'Look' },
    },
    { files: DATA, text: 'Look', options: { title: 'T', channels: 'C1,C2' } },
  ],
  [
    'discord',
    { resource: 'message', content: 'Look', files: { values: [{ inputFieldName: 'data' }] } },
    { text: 'Look', files: [DATA] },
  ],
  [
    'whatsApp',
    { messageType: 'image', mediaPath: 'useMedian8n', additionalFields: { mediaCaption: 'Look' } },
    { files: DATA, options: { type: 'image', image: { caption: 'Look' } } },
  ],
  [
    'whatsApp',
    { resource: 'media', phoneNumberId: '7' },
    { method: 'POST 7/media', body: { messaging_product: 'whatsapp' }, files: { file: DATA } },
  ],
  [
    'emailSend',
    { toEmail: 'a@b.c', options: { attachments: 'logo', fileAttachments: 'one, two' } },
    {
      attachments:
        '={{ Object.keys($binary).length === 0 ? [] : [' +
        '...["logo"].map(one => typeof one === \'object\' ? one : ({ file: $binary[one], cid: one })), ' +
        '...["one","two"].map(one => typeof one === \'object\' ? one : $binary[one])] }}',
    },
  ],
])('%s with %j takes the files of its item', (type, parameters, config) => {
  expect(importNode(type, parameters)).toMatchObject({ config })
})

test.each([
  ['telegram', {}, 'telegramApi', 'TELEGRAM'],
  ['slack', { authentication: 'oAuth2' }, 'slackOAuth2Api', 'SLACK'],
  ['discord', { resource: 'message' }, 'discordBotApi', 'DISCORD'],
  ['discord', { authentication: 'webhook' }, 'discordWebhookApi', 'DISCORD_WEBHOOK'],
  ['mattermost', {}, 'mattermostApi', 'MATTERMOST'],
  ['whatsApp', {}, 'whatsAppApi', 'WHATSAPP'],
  ['twilio', {}, 'twilioApi', 'TWILIO'],
  ['emailSend', { toEmail: 'a@b.c' }, 'smtp', 'SMTP'],
])('%s with %j asks for its credential by its type', (type, parameters, theirs, ours) => {
  const credentials = { [theirs]: { id: '7', name: 'Ours' } }
  const { type: made, needs } = importNode(type, parameters, { credentials })
  expect(made).toBe(type === 'emailSend' ? 'SEND_EMAIL' : 'CHAT_MESSAGE')
  expect(needs).toMatchObject([{ key: '7', type: theirs, as: ours, types: [ours], nodes: ['Say'] }])
})

test('the URL of a webhook that stands in an old node is asked for, and is nowhere in what is made', () => {
  const webhookUri = 'https://discord.com/api/webhooks/7/canary'
  const made = importNode('discord', { text: 'Hello', webhookUri, options: {} }, { typeVersion: 1 })
  expect(made).toMatchObject({ type: 'CHAT_MESSAGE', config: { text: 'Hello' } })
  expect(JSON.stringify(made)).not.toContain('canary')
  expect(made.needs).toMatchObject([{ as: 'DISCORD_WEBHOOK' }])
})

test('what is left empty is imported, and fails when it comes to it', () => {
  expect(importNode('telegram', { chatId: '', text: 'Hello' }).type).toBe('CHAT_MESSAGE')
  expect(importNode('telegram', { operation: 'deleteMessage' }).type).toBe('CHAT_MESSAGE')
  expect(importNode('slack', { resource: 'reaction' }).type).toBe('CHAT_MESSAGE')
  expect(importNode('emailSend', {}).type).toBe('SEND_EMAIL')
})
