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
  ['telegram', { binaryData: true, chatId: '1' }, 'it sends a file that comes with the item'],
  ['telegram', { resource: 'file', fileId: '1' }, 'it downloads a file into the item'],
  ['telegram', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['slack', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['slack', { resource: 'file' }, 'it sends a file that comes with the item'],
  ['slack', { resource: 'userGroup', operation: 'create' }, 'Perdure has no "create" of "userGroup"'],
  ['discord', { resource: 'message', sendTo: 'user' }, 'it sends to a user'],
  ['emailSend', { operation: 'sendAndWait' }, 'sends a message and waits for the answer'],
  ['emailSend', { toEmail: 'a@b.c', options: { attachments: 'data' } }, 'it sends a file that comes with'],
  ['mattermost', { resource: 'user', operation: 'create' }, 'Perdure has no "create" of "user"'],
  ['whatsApp', { resource: 'media' }, 'it sends a file that comes with the item'],
  ['whatsApp', { messageType: 'contacts' }, 'it sends "contacts"'],
])('%s with %j stops by name', (type, parameters, why) => {
  const { type: made, report } = importNode(type, parameters)
  expect(made).toBe('STOP_AND_ERROR')
  expect(report.problems.map(({ message }) => message).join()).toContain(why)
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
